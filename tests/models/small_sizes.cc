#include "tests/models/small_sizes.h"

#include <optional>
#include <string>
#include <vector>

#include "ir/op_kind.h"
#include "ir/rebuild.h"
#include "support/check.h"

namespace orrery {
namespace small_sizes_cc {
namespace {

int64_t Smaller(const std::map<int64_t, int64_t>& sizes, int64_t size) {
  const auto found = sizes.find(size);
  return found == sizes.end() ? size : found->second;
}

ir::TensorType Smaller(const SmallSizes& sizes, ir::TensorType type) {
  for (int64_t& dim : type.dims) dim = Smaller(sizes.dims, dim);
  return type;
}

// The first of the values of a constant, as many as are left.
template <typename T>
std::vector<T> First(std::vector<T> values, const SmallSizes& sizes) {
  const auto count = static_cast<size_t>(Smaller(sizes.dims, static_cast<int64_t>(values.size())));
  if (count < values.size()) values.resize(count);
  return values;
}

}  // namespace
}  // namespace small_sizes_cc

ir::Function WithSmallSizes(const ir::Function& function, const SmallSizes& sizes) {
  const ir::Rebuild change{
      .input = [&](const ir::Input&,
                   const ir::TensorType& type) { return small_sizes_cc::Smaller(sizes, type); },
      .uninferred =
          [&](ir::OpId, const ir::TensorType& type) {
            return small_sizes_cc::Smaller(sizes, type);
          },
      .attributes = [&](ir::OpKind kind,
                        const ir::AttributeSet& attributes) -> std::optional<ir::AttributeSet> {
        ir::AttributeSet changed = attributes;
        for (const char* name : {"shape", "values"}) {
          const bool values = kind == ir::OpKind::kConstant;
          if (attributes.Find(name) == nullptr || attributes.Ints(name).empty()) continue;
          std::vector<int64_t> list = attributes.Ints(name);
          if (values) {
            list = small_sizes_cc::First(std::move(list), sizes);
          } else {
            for (int64_t& size : list) size = small_sizes_cc::Smaller(sizes.dims, size);
          }
          changed.Set(name, std::move(list));
        }
        if (attributes.Find("kernel") != nullptr) {
          std::vector<int64_t> list = attributes.Ints("kernel");
          for (int64_t& size : list) size = small_sizes_cc::Smaller(sizes.kernels, size);
          changed.Set("kernel", std::move(list));
        }
        for (const char* name : {"heads", "kv_heads"}) {
          if (attributes.Find(name) == nullptr) continue;
          changed.Set(name, small_sizes_cc::Smaller(sizes.heads, attributes.Int(name, 0)));
        }
        return changed;
      }};
  absl::StatusOr<ir::Function> small = ir::RebuildWithInputs(function, change);
  ORRERY_CHECK(small.ok()) << small.status().ToString();
  return *std::move(small);
}

}  // namespace orrery
