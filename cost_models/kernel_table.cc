#include "cost_models/kernel_table.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/numbers/median.h"
#include "support/status.h"

namespace orrery::cost_models {
namespace kernel_table_cc {
namespace {

// No kernel takes a nanosecond: so ratios of times stay numbers.
constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1e5;
constexpr int64_t kMostBytes = int64_t{1} << 50;

enum Column : uint8_t { kOp, kDType, kShape, kLayout, kSeconds, kDevice, kDirection };
constexpr std::array<absl::string_view, 7> kColumns = {"op",      "dtype",  "shape",    "layout",
                                                       "seconds", "device", "direction"};
constexpr size_t kNeeded = 5;  // the first of them

// The fields of a line as RFC 4180 has them, without line feeds in them; blanks around are none.
std::vector<std::string> FieldsOf(absl::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += c;
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
  return fields;
}

// What stands in a line, by column.
class Line {
 public:
  Line(const std::array<int, kColumns.size()>& places, std::vector<std::string> fields)
      : places_(places), fields_(std::move(fields)) {}

  std::string operator[](Column column) const {
    const int place = places_[column];
    return place < 0 || place >= std::ssize(fields_) ? "" : fields_[static_cast<size_t>(place)];
  }

  // "column 3 (shape): got '4x': wanted m x n x k".
  absl::Status Wrong(Column column, absl::string_view wanted) const {
    const std::string got = absl::CEscape((*this)[column].substr(0, 60));
    return absl::InvalidArgumentError(absl::StrCat("column ", places_[column] + 1, " (",
                                                   kColumns[column], "): got '", got, "'; wanted ",
                                                   wanted));
  }

 private:
  const std::array<int, kColumns.size()>& places_;
  std::vector<std::string> fields_;
};

absl::StatusOr<std::array<int, kColumns.size()>> PlacesOf(const std::vector<std::string>& head) {
  std::array<int, kColumns.size()> places;
  for (size_t c = 0; c < kColumns.size(); ++c) {
    const auto found = std::ranges::find(head, kColumns[c]);
    places[c] = found == head.end() ? -1 : static_cast<int>(found - head.begin());
    if (places[c] >= 0 || c >= kNeeded) continue;
    const std::string got = absl::CEscape(absl::StrJoin(head, ",").substr(0, 80));
    return absl::InvalidArgumentError(
        absl::StrCat("the head '", got, "' has no column ", kColumns[c], "; wanted ",
                     absl::StrJoin(kColumns.begin(), kColumns.begin() + kNeeded, ","),
                     " and, where there are such, device, direction"));
  }
  return places;
}

// "4096x12288x12288"; in quotes also with commas. Empty: is none of `least` to `most` sizes.
std::vector<int64_t> ShapeOf(const std::string& text, size_t least, size_t most) {
  return ParseKernelSizes(text, "x,", {.least = least, .most = most});
}

absl::Status ReadProduct(const Line& line, MeasuredKernel& kernel) {
  const bool grouped = kernel.form == KernelForm::kGrouped;
  const std::vector<int64_t> shape = ShapeOf(line[kShape], grouped ? 4 : 3, 4);
  if (shape.empty()) {
    return line.Wrong(kShape, grouped ? "experts x m x n x k, m rows of each"
                                      : "m x n x k or batch x m x n x k, as 4096x12288x12288");
  }
  const size_t at = shape.size() - 3;
  kernel.sizes = {at == 1 ? shape[0] : 1, shape[at], shape[at + 1], shape[at + 2]};
  const std::string layout = line[kLayout];
  kernel.layout = kProductLayoutNames.Find(layout);
  if (!kernel.layout.has_value() && !layout.empty() && layout != "any") {
    return line.Wrong(kLayout, absl::StrCat(kProductLayoutNames.List(", "), " or any"));
  }
  return absl::OkStatus();
}

absl::Status ReadAttention(const Line& line, MeasuredKernel& kernel) {
  const std::vector<int64_t> s = ShapeOf(line[kShape], 4, 5);
  if (s.empty()) return line.Wrong(kShape, "batch x heads x queries x width, and x keys if others");
  kernel.sizes = {s[0] * s[1], s[2], s.size() == 5 ? s[4] : s[2], s[3]};
  kernel.heads = s[1];
  const std::string layout = line[kLayout], direction = line[kDirection];
  kernel.causal = layout == "causal" || layout.empty();
  if (!kernel.causal && layout != "all") return line.Wrong(kLayout, "causal or all (keys)");
  kernel.backward = direction == "backward";
  if (!kernel.backward && direction != "forward" && !direction.empty()) {
    return line.Wrong(kDirection, "forward or backward");
  }
  return absl::OkStatus();
}

// Nothing where the row is of an op that has no price of its own.
absl::StatusOr<std::optional<MeasuredKernel>> KernelOf(const Line& line) {
  MeasuredKernel kernel = {.device = line[kDevice]};
  const std::string op = line[kOp];
  if (op == "layer") return std::nullopt;
  absl::Status read;
  if (op == "matmul" || op == "grouped") {
    if (op == "grouped") kernel.form = KernelForm::kGrouped;
    read = ReadProduct(line, kernel);
  } else if (op == "attention") {
    kernel.form = KernelForm::kAttention;
    read = ReadAttention(line, kernel);
  } else if (op == "elementwise") {
    kernel.form = KernelForm::kMoving;
    int64_t& bytes = kernel.sizes[0];
    const bool fits = absl::SimpleAtoi(line[kShape], &bytes) && bytes >= 1 && bytes <= kMostBytes;
    if (!fits) read = line.Wrong(kShape, "the bytes that are read and written");
  } else {
    read = line.Wrong(kOp, "matmul, grouped, attention, elementwise or layer");
  }
  if (!read.ok()) return read;
  std::string type = line[kDType];
  if (absl::StartsWith(type, "fp")) type.erase(1, 1);  // as --dtype has it
  if (const auto dtype = ir::ParseDType(type); dtype.has_value() && ir::IsFloat(*dtype)) {
    if (kernel.form != KernelForm::kMoving) kernel.dtype = CountedAs(*dtype);
  } else {
    return line.Wrong(kDType, "bf16, f16, f32, f8 or f4");
  }
  const bool is_time = absl::SimpleAtod(line[kSeconds], &kernel.seconds) &&
                       kernel.seconds >= kLeastSeconds && kernel.seconds <= kMostSeconds;
  if (!is_time) {
    return line.Wrong(kSeconds, absl::StrCat(kLeastSeconds, " to ", kMostSeconds, " seconds"));
  }
  return kernel;
}

// Rows of the same kernel as one, of the median, in the order of their first lines.
std::vector<MeasuredKernel> Merged(std::vector<MeasuredKernel> rows) {
  const auto key = [](const MeasuredKernel& row) {
    return std::tuple(row.form, row.dtype, row.layout, row.backward, row.causal, row.sizes,
                      row.heads, row.device);
  };
  std::map<decltype(key(rows[0])), std::vector<size_t>> alike;
  for (size_t i = 0; i < rows.size(); ++i) alike[key(rows[i])].push_back(i);
  std::vector<MeasuredKernel> merged;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<size_t>& same = alike[key(rows[i])];
    if (same.front() != i) continue;
    MeasuredKernel& row = merged.emplace_back(rows[i]);
    std::vector<double> seconds;
    row.lines.clear();
    for (const size_t of : same) {
      seconds.push_back(rows[of].seconds);
      row.lines.push_back(rows[of].lines[0]);
    }
    row.seconds = MedianOf(std::move(seconds));
  }
  return merged;
}

}  // namespace
}  // namespace kernel_table_cc

std::vector<int64_t> ParseKernelSizes(absl::string_view text, absl::string_view between,
                                      const SizesWanted& wanted) {
  std::vector<int64_t> sizes;
  double together = 1;
  for (const absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(between))) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 1 || size > wanted.most_of_one) return {};
    sizes.push_back(size);
    together *= static_cast<double>(size);
  }
  const bool fits = sizes.size() >= wanted.least && sizes.size() <= wanted.most &&
                    together <= SizesWanted::kMostTogether;
  return fits ? sizes : std::vector<int64_t>();
}

ir::DType CountedAs(ir::DType dtype) { return dtype == ir::DType::kF16 ? ir::DType::kBF16 : dtype; }

bool MeasuredKernel::IsOf(absl::string_view device_name) const {
  if (!absl::StartsWith(device_name, device)) return false;
  return device.empty() || device == device_name || device_name[device.size()] == '-';
}

std::string ShapeText(const MeasuredKernel& row) {
  const auto& [first, second, third, fourth] = row.sizes;
  if (row.form == KernelForm::kMoving) return absl::StrCat(first);
  if (IsProduct(row.form)) {
    const bool several = first > 1 || row.form == KernelForm::kGrouped;
    return absl::StrCat(several ? absl::StrCat(first, "x") : "", second, "x", third, "x", fourth);
  }
  return absl::StrCat(first / row.heads, "x", row.heads, "x", second, "x", fourth,
                      third != second ? absl::StrCat("x", third) : "");
}

std::string ShapeText(const OpKernel& kernel) {
  if (kernel.form == KernelForm::kOther) return "";
  return ShapeText(MeasuredKernel{.form = kernel.form,
                                  .sizes = SizesOf(kernel),
                                  .heads = std::max<int64_t>(kernel.attention.heads, 1)});
}

KernelSizes SizesOf(const OpKernel& kernel) {
  switch (kernel.form) {
    case KernelForm::kProduct:
    case KernelForm::kGrouped:
      return {kernel.shape.batch, kernel.shape.m, kernel.shape.n, kernel.shape.k};
    case KernelForm::kAttention:
      return {kernel.attention.batch * kernel.attention.heads, kernel.attention.queries,
              kernel.attention.keys, kernel.attention.width};
    default:
      return {kernel.bytes.count(), 1, 1, 1};
  }
}

absl::StatusOr<std::vector<MeasuredKernel>> ParseKernelTable(absl::string_view text,
                                                             const std::string& name) {
  using kernel_table_cc::kColumns;
  std::optional<std::array<int, kColumns.size()>> places;
  std::vector<MeasuredKernel> rows;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (stripped.empty() || stripped[0] == '#') continue;
    const std::string where = absl::StrCat(name, ": line ", number);
    std::vector<std::string> fields = kernel_table_cc::FieldsOf(stripped);
    if (!places.has_value()) {
      auto found = kernel_table_cc::PlacesOf(fields);
      if (!found.ok()) return Annotate(found.status(), where);
      places = *found;
      continue;
    }
    auto kernel = kernel_table_cc::KernelOf({*places, std::move(fields)});
    if (!kernel.ok()) return Annotate(kernel.status(), where);
    if (!kernel->has_value()) continue;
    (*kernel)->lines = {number};
    rows.push_back(**std::move(kernel));
  }
  if (!rows.empty()) return kernel_table_cc::Merged(std::move(rows));
  return absl::InvalidArgumentError(
      absl::StrCat(name,
                   ": got no measured kernel; wanted lines such as op,dtype,shape,layout,"
                   "seconds and matmul,bf16,4096x12288x12288,TN,0.00197"));
}

absl::StatusOr<std::vector<MeasuredKernel>> ReadKernelTable(const std::string& spec) {
  const std::string kOnly = ",only=";
  const size_t at = spec.rfind(kOnly);
  const std::string path = spec.substr(0, at);
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ORRERY_ASSIGN_OR_RETURN(std::vector<MeasuredKernel> rows, ParseKernelTable(text, path));
  if (at == std::string::npos) return rows;
  const std::string only = spec.substr(at + kOnly.size());
  std::erase_if(rows,
                [&](const MeasuredKernel& row) { return !absl::StrContains(row.device, only); });
  if (!rows.empty()) return rows;
  return absl::InvalidArgumentError(absl::StrCat(path, ": got no row with '", only,
                                                 "' in its device; wanted one, as in only=h100"));
}

}  // namespace orrery::cost_models
