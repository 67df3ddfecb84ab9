#include "tools/model_kernels.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cost_models/kernel_table.h"
#include "ir/model_facts.h"
#include "support/csv.h"
#include "support/file.h"
#include "support/status.h"
#include "support/text_table.h"
#include "tools/one_plan.h"
#include "tools/plan_flags.h"
#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace model_kernels_cc {
namespace {

using cost_models::KernelForm;
using search::StepKernel;
using Kernels = std::span<const StepKernel>;

// What is drawn and named alike.
struct Group {
  absl::string_view name;
  absl::string_view op;           // of rows of a table of kernels
  absl::string_view data, color;  // of a plot; colors with the half of what is behind them
};

Group GroupOf(KernelForm form) {
  switch (form) {
    case KernelForm::kProduct:
      return {"products", "matmul", "products", "#801f77b4"};
    case KernelForm::kGrouped:
      return {"products of experts", "grouped", "experts", "#802ca02c"};
    case KernelForm::kAttention:
      return {"attention", "attention", "attention", "#80d62728"};
    case KernelForm::kMoving:
      return {"others", "elementwise", "moving", "#80ff7f0e"};
    case KernelForm::kOther:
      break;
  }
  return {"convolutions, attention in parts", "", "rest", "#809467bd"};
}

double SecondsOf(Kernels kernels) {
  double seconds = 0;
  for (const StepKernel& kernel : kernels) seconds += kernel.seconds();
  return seconds;
}

double IntensityOf(const StepKernel& row) {
  return row.kernel.flops.count() /
         static_cast<double>(std::max<int64_t>(row.kernel.bytes.count(), 1));
}

double RateOf(const StepKernel& row) {
  return row.kernel.flops.count() / std::max(row.kernel.time.seconds(), 1e-12);
}

double BandwidthOf(const cluster::Device& device) {
  return static_cast<double>(device.memory_bandwidth.bytes_per_second());
}

std::string LayoutOf(const StepKernel& row) {
  const cost_models::OpKernel& kernel = row.kernel;
  if (IsProduct(kernel.form)) {
    return std::string(cost_models::kProductLayoutNames.Of(kernel.layout));
  }
  if (kernel.form != KernelForm::kAttention) return "";
  return kernel.attention.visible < 1 ? "causal" : "all";
}

std::string DirectionOf(const StepKernel& row) {
  if (row.kernel.form != KernelForm::kAttention) return "";
  return row.kernel.attention.backward ? "backward" : "forward";
}

// What the kernel would take if only this limited it, of what it takes.
std::string LimitOf(const StepKernel& row, const cluster::Device& device) {
  const double seconds = std::max(row.kernel.time.seconds(), 1e-12);
  const double memory =
      static_cast<double>(row.kernel.bytes.count()) / BandwidthOf(device) / seconds;
  const bool moves = row.kernel.form == KernelForm::kMoving;
  const double peak = moves ? device.fp32.flops_per_second()
                            : cost_models::MatrixPeak(row.dtype, device).flops_per_second();
  const double work = row.kernel.flops.count() / peak / seconds;
  return absl::StrFormat("%.0f %% of %s", 100 * std::max(memory, work),
                         work > memory ? "flops" : "memory");
}

TextRow RowOf(const StepKernel& row, const cluster::Device& device, double all) {
  const std::string shape = cost_models::ShapeText(row.kernel);
  return {absl::StrCat(row.op, " ", shape, shape.empty() ? "" : " ", LayoutOf(row)),
          std::string(ToString(row.dtype)),
          absl::StrCat(row.count),
          ToString(row.kernel.time),
          absl::StrFormat("%.2f %%", 100 * row.seconds() / all),
          absl::StrFormat("%.1f", IntensityOf(row)),
          absl::StrFormat("%.1f", RateOf(row) / 1e12),
          LimitOf(row, device)};
}

// A roof: what `peak` leaves of what memory can feed.
std::string Roof(double peak, double bandwidth, absl::string_view color, const std::string& name) {
  return absl::StrFormat("(x * %g < %g ? x * %g : %g) with lines lw 2 lc rgb '%s' title %s",
                         bandwidth, peak, bandwidth, peak, color, PlotText(name));
}

std::string RoofsOf(Kernels kernels, const cluster::Device& device) {
  std::set<ir::DType> types = {ir::DType::kF32};
  for (const StepKernel& row : kernels) {
    if (row.kernel.form != KernelForm::kMoving) types.insert(row.dtype);
  }
  constexpr absl::string_view kColors[] = {"#999999", "#000000", "#2ca02c"};
  size_t number = 0;
  std::string roofs;
  const double bandwidth = BandwidthOf(device);
  for (const ir::DType type : types) {
    const double peak = cost_models::MatrixPeak(type, device).flops_per_second();
    const std::string name = absl::StrFormat("%s: %.4g TFLOP/s, %.4g TB/s", ToString(type),
                                             peak / 1e12, bandwidth / 1e12);
    absl::StrAppend(&roofs, roofs.empty() ? "" : ", ",
                    Roof(peak, bandwidth, kColors[number++ % std::size(kColors)], name));
  }
  return roofs;
}

// From a share of the time to the size of a point: its area grows with it.
double PointSize(double share) { return 0.4 + 4 * std::sqrt(share); }

// From a power of ten to another, around the points and where the roofs bend.
std::string RangeOf(const std::vector<PlotTable>& tables, const cluster::Device& device) {
  double least = 1, most = 2 * device.fp16.flops_per_second() / BandwidthOf(device);
  for (const PlotTable& table : tables) {
    for (const std::vector<PlotCell>& row : table.rows) {
      least = std::min(least, std::get<double>(row[0]));
      most = std::max(most, std::get<double>(row[0]));
    }
  }
  return absl::StrFormat("[%g:%g]", std::pow(10, std::floor(std::log10(least))),
                         std::pow(10, std::ceil(std::log10(most))));
}

absl::Status WriteFiles(const ModelKernelFlags& flags, const search::Setting& setting,
                        Kernels kernels) {
  if (!flags.csv.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.csv, KernelsCsv(kernels)));
  if (!flags.json.empty()) ORRERY_RETURN_IF_ERROR(WriteFile(flags.json, KernelsJson(kernels)));
  if (flags.roofline.empty()) return absl::OkStatus();
  const std::string title = absl::StrCat(setting.model_name, ", batch ", setting.batch_size,
                                         ", on ", setting.cluster.device.name);
  return WritePlot(flags.roofline, RooflinePlot(kernels, setting.cluster.device, title));
}

}  // namespace
}  // namespace model_kernels_cc

std::string KernelsText(std::span<const search::StepKernel> kernels, const cluster::Device& device,
                        size_t most) {
  namespace own = model_kernels_cc;
  const double all = std::max(own::SecondsOf(kernels), 1e-12);
  std::vector<TextRow> rows = {
      {"kernel", "type", "count", "each", "of all kernels", "flops a byte", "TFLOP/s", "reaches"}};
  for (const search::StepKernel& row : kernels.first(std::min(most, kernels.size()))) {
    rows.push_back(own::RowOf(row, device, all));
  }
  std::string text = TextTable(rows, 1);
  if (kernels.size() <= most) return text;
  const double rest = own::SecondsOf(kernels.subspan(most));
  absl::StrAppendFormat(&text, "and %d others: %.2f %%\n", kernels.size() - most, 100 * rest / all);
  return text;
}

std::string KernelsCsv(std::span<const search::StepKernel> kernels) {
  namespace own = model_kernels_cc;
  const double all = std::max(own::SecondsOf(kernels), 1e-12);
  std::string out = "op,dtype,shape,layout,seconds,direction,count,share,kind\n";
  for (const search::StepKernel& row : kernels) {
    const absl::string_view op = own::GroupOf(row.kernel.form).op;
    const bool fits = !op.empty() && ir::IsFloat(row.dtype) && row.kernel.bytes > Bytes(0);
    if (!fits || row.kernel.time <= Duration(0)) continue;
    absl::StrAppendFormat(&out, "%s,%s,%s,%s,%.6g,%s,%d,%.6f,%s\n", op, ToString(row.dtype),
                          cost_models::ShapeText(row.kernel), own::LayoutOf(row),
                          row.kernel.time.seconds(), own::DirectionOf(row), row.count,
                          row.seconds() / all, CsvField(row.op));
  }
  return out;
}

std::string KernelsJson(std::span<const search::StepKernel> kernels) {
  namespace own = model_kernels_cc;
  const double all = std::max(own::SecondsOf(kernels), 1e-12);
  auto list = nlohmann::ordered_json::array();
  for (const search::StepKernel& row : kernels) {
    list.push_back({{"kind", row.op},
                    {"group", std::string(own::GroupOf(row.kernel.form).name)},
                    {"dtype", std::string(ToString(row.dtype))},
                    {"shape", cost_models::ShapeText(row.kernel)},
                    {"layout", own::LayoutOf(row)},
                    {"direction", own::DirectionOf(row)},
                    {"count", row.count},
                    {"time_s", row.kernel.time.seconds()},
                    {"share", row.seconds() / all},
                    {"flops", row.kernel.flops.count()},
                    {"bytes", row.kernel.bytes.count()},
                    {"flops_per_byte", own::IntensityOf(row)},
                    {"flops_per_s", own::RateOf(row)}});
  }
  return absl::StrCat(nlohmann::ordered_json({{"kernels", std::move(list)}}).dump(2), "\n");
}

Plot RooflinePlot(std::span<const search::StepKernel> kernels, const cluster::Device& device,
                  const std::string& title) {
  namespace own = model_kernels_cc;
  const double all = std::max(own::SecondsOf(kernels), 1e-12);
  double without = 0;
  std::vector<PlotTable> tables;
  std::string points;
  for (const auto form : {cost_models::KernelForm::kProduct, cost_models::KernelForm::kGrouped,
                          cost_models::KernelForm::kAttention, cost_models::KernelForm::kMoving,
                          cost_models::KernelForm::kOther}) {
    PlotTable table = {.name = std::string(own::GroupOf(form).data), .rows = {}};
    for (const search::StepKernel& row : kernels) {
      if (row.kernel.form != form) continue;
      const double share = row.seconds() / all;
      if (row.kernel.flops.count() <= 0) {
        without += share;
      } else {
        table.rows.push_back({own::IntensityOf(row), own::RateOf(row), own::PointSize(share)});
      }
    }
    if (table.rows.empty()) continue;
    const own::Group group = own::GroupOf(form);
    absl::StrAppendFormat(&points,
                          ", $%s using 1:2:3 with points pt 7 ps variable lc rgb '%s' title %s",
                          table.name, group.color, PlotText(group.name));
    tables.push_back(std::move(table));
  }
  const std::string axis = absl::StrFormat(
      "flops a byte (the larger a point, the more of kernels' time; %.1f %% of it have no flops)",
      100 * without);
  std::string commands = absl::StrCat(
      "set title ", PlotText(title), " font ',11'\nset logscale xy\nset grid\n",
      "set key bottom right\nset samples 500\nset xlabel ", PlotText(axis), "\nset ylabel ",
      PlotText("FLOP/s"), "\nset xrange ", own::RangeOf(tables, device),
      "\nset format x '%g'\nset format y '%.0s %c'\nplot ", own::RoofsOf(kernels, device), points,
      "\n");
  return {.commands = std::move(commands), .tables = std::move(tables), .width = 1000};
}

absl::Status AnswerModel(const ModelKernelFlags& flags) {
  if (!flags.roofline.empty()) {
    ORRERY_RETURN_IF_ERROR(Annotate(CheckPlot(flags.roofline), "--roofline"));
  }
  ORRERY_ASSIGN_OR_RETURN(const search::ParallelPlan plan, ReadPlan(flags.plan_axes, {}));
  ORRERY_ASSIGN_OR_RETURN(search::Setting setting, MakeSetting(flags.model, plan));
  setting.lowering.kernels.choice.experts.present = ir::CommonExperts(setting.step) > 0;
  PrintWarnings(setting.notes.warnings);
  ORRERY_RETURN_IF_ERROR(CheckFlags(flags.plan_axes, plan, setting.base));
  ORRERY_RETURN_IF_ERROR(ReadOrders(plan, setting));
  ORRERY_ASSIGN_OR_RETURN(const search::Run run, PlayOne(setting, plan));
  const std::vector<search::StepKernel> kernels = search::KernelsOfStep(setting, run);
  ORRERY_RETURN_IF_ERROR(model_kernels_cc::WriteFiles(flags, setting, kernels));
  constexpr size_t kShown = 20;
  std::cout << setting.model_name << ", batch " << setting.batch_size << ", on "
            << setting.cluster.name << "\n"
            << transforms::ToString(plan, setting.base) << "\n\n"
            << KernelsText(kernels, setting.cluster.device, kShown);
  return absl::OkStatus();
}

}  // namespace orrery::tools
