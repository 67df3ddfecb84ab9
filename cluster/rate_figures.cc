#include "cluster/rate_figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cluster/quantity.h"

namespace orrery::cluster {
namespace rate_figures_cc {
namespace {

constexpr double kLeastShare = 0.001;
constexpr double kPicosecondsAMicrosecond = 1e6;

void AddProducts(const std::string& of, ProductRates& rates, std::vector<RateFigure>& figures) {
  const auto add = [&](absl::string_view name, absl::string_view meaning, auto* value, double least,
                       double most) {
    figures.push_back({absl::StrCat(of, ".", name), meaning, value, least, most});
  };
  add("efficiency", "share of the peak that the largest tiles reach in a burst", &rates.efficiency,
      kLeastShare, 1);
  add("memory", "share of the peak of memory", &rates.memory, kLeastShare, 1);
  add("fill", "elements of k: what a block does before and after its loop", &rates.fill, 0, 1e5);
  add("wave_weight", "how much of a last, partly filled wave counts", &rates.wave_weight, 0, 1);
  add("tile_penalty", "loss of small tiles, a share of the time for each time more that they read",
      &rates.tile_penalty, 0, 10);
  add("step", "least time of a block for 128 bytes of k", &rates.step, 0, 1e3);
  add("unaligned", "share that is left where rows begin at no multiple of 16 bytes",
      &rates.unaligned.even, kLeastShare, 1);
  add("unaligned_odd", "where they begin at no multiple of 4 bytes", &rates.unaligned.odd,
      kLeastShare, 1);
  add("unaligned_batch", "the same of products of many matrices", &rates.unaligned.batch,
      kLeastShare, 1);
}

void AddAttention(const std::string& of, AttentionRates& rates, std::vector<RateFigure>& figures) {
  const auto add = [&](absl::string_view name, absl::string_view meaning, auto* value, double least,
                       double most) {
    figures.push_back({absl::StrCat("attention.", of, ".", name), meaning, value, least, most});
  };
  add("efficiency", "share of the peak, of a head of 128 and many keys", &rates.efficiency,
      kLeastShare, 1);
  add("backward", "of its backward, times that", &rates.backward, kLeastShare, 2);
  add("fill", "keys: what a tile of queries takes besides those it sees", &rates.fill, 0, 1e5);
  add("backward_fill", "the same backward", &rates.backward_fill, 0, 1e5);
  add("width_power", "another width w reaches (w / 128, or its inverse) to this power",
      &rates.width_power, 0, 8);
  add("whole_heads", "a block takes a whole head", &rates.whole_heads, 0, 1);
}

}  // namespace
}  // namespace rate_figures_cc

std::vector<RateFigure> FiguresOf(KernelRates& rates) {
  using rate_figures_cc::kLeastShare;
  std::vector<RateFigure> figures = {
      {"cores", "that run a block at a time", &rates.cores, 1, 1e6},
      {"start", "from one kernel to the next", &rates.start, 0, 1e6},
      {"sustained", "clock of training over that of a burst", &rates.sustained, kLeastShare, 1},
      {"sustained_quarter", "the same in products of 8 bits", &rates.sustained_quarter, kLeastShare,
       1},
      {"sustained_eighth", "the same in products of 4 bits", &rates.sustained_eighth, kLeastShare,
       1},
      {"straggling", "so much longer takes the slowest of twice as many devices", &rates.straggling,
       0, 1}};
  rate_figures_cc::AddProducts("half", rates.half, figures);
  rate_figures_cc::AddProducts("quarter", rates.quarter, figures);
  rate_figures_cc::AddProducts("blocks", rates.blocks, figures);
  rate_figures_cc::AddProducts("eighth", rates.eighth, figures);
  const std::pair<const char*, AttentionRates&> classes[] = {
      {"cudnn", rates.attention.cudnn},   {"flash3", rates.attention.flash3},
      {"flash2", rates.attention.flash2}, {"flash1", rates.attention.flash1},
      {"triton", rates.attention.triton}, {"cudnn8", rates.attention.cudnn8}};
  for (const auto& [name, attention] : classes) {
    rate_figures_cc::AddAttention(name, attention, figures);
  }
  figures.push_back({"copies_both_ways", "copies to 8 bits are made in both orders",
                     &rates.copies_both_ways, 0, 1});
  figures.push_back({"other_products", "share of the peak that convolutions reach",
                     &rates.other_products, kLeastShare, 1});
  figures.push_back({"scan", "share of the peak of memory that kernels along a sequence reach",
                     &rates.scan, kLeastShare, 1});
  figures.push_back({"gather", "share of the peak of memory in kernels that sort rows by expert",
                     &rates.gather, kLeastShare, 1});
  return figures;
}

double NumberOf(const RateFigure& figure) {
  if (const auto* time = std::get_if<Duration*>(&figure.value)) {
    return static_cast<double>((*time)->picoseconds()) / rate_figures_cc::kPicosecondsAMicrosecond;
  }
  if (const auto* count = std::get_if<int*>(&figure.value)) return **count;
  if (const auto* flag = std::get_if<bool*>(&figure.value)) return **flag ? 1 : 0;
  return *std::get<double*>(figure.value);
}

void SetNumber(const RateFigure& figure, double number) {
  const double fit = std::clamp(number, figure.least, figure.most);
  if (const auto* time = std::get_if<Duration*>(&figure.value)) {
    **time = Duration(std::llround(fit * rate_figures_cc::kPicosecondsAMicrosecond));
  } else if (const auto* count = std::get_if<int*>(&figure.value)) {
    **count = static_cast<int>(std::lround(fit));
  } else if (const auto* flag = std::get_if<bool*>(&figure.value)) {
    **flag = fit >= 0.5;
  } else {
    *std::get<double*>(figure.value) = fit;
  }
}

absl::Status CheckFigure(const RateFigure& figure) {
  const double number = NumberOf(figure);
  if (number >= figure.least && number <= figure.most) return absl::OkStatus();
  const auto* const time = std::get_if<Duration*>(&figure.value);
  return absl::InvalidArgumentError(
      time != nullptr
          ? absl::StrCat("got ", Print(**time), "; wanted ", figure.least, "us to ", figure.most,
                         "us")
          : absl::StrCat("got ", number, "; wanted ", figure.least, " to ", figure.most));
}

}  // namespace orrery::cluster
