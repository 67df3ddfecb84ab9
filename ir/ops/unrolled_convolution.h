#ifndef ORRERY_IR_OPS_UNROLLED_CONVOLUTION_H_
#define ORRERY_IR_OPS_UNROLLED_CONVOLUTION_H_

#include <cstdint>
#include <vector>

#include "ir/ops/kernels.h"
#include "ir/ops/matrix_product.h"
#include "ir/ops/window.h"
#include "ir/tensor.h"

// Convolution on tensors. The image unrolled to columns, one for each position of the window, is a
// matrix that the weights of a group are multiplied with. Whole numbers wrap around.

namespace orrery::ir {

/// Image, weights and maps of one convolution, of which one is the result and starts as zero. T is
/// double or uint64_t.
template <typename T>
class Convolution {
 public:
  Convolution(const Evaluation& e, const Tensor& image, const Tensor& weight, const Tensor& maps)
      : image_(Elements<T>(image)),
        weight_(Elements<T>(weight)),
        maps_(Elements<T>(maps)),
        batch_(image.dims()[0]),
        channels_(weight.dims()[1]),
        groups_(image.dims()[1] / weight.dims()[1]),
        group_maps_(weight.dims()[0] / groups_),
        kernel_(ElementCount(SpatialDims(weight.dims()))),
        pixels_(ElementCount(SpatialDims(image.dims()))),
        positions_(ElementCount(SpatialDims(maps.dims()))),
        taps_(WindowTaps(WindowOf(e.attributes, SpatialDims(weight.dims())).value(),
                         SpatialDims(image.dims()), SpatialDims(maps.dims()))) {}

  /// Adds to the maps.
  void Forward() {
    ForEachGroup([&](T* image, const Matrix& weight, const Matrix& maps) {
      std::vector<T> columns = Unroll(image);
      AddProduct(maps, weight, Columns(columns));
    });
  }
  /// Adds to the image what each element of the maps was made from.
  void ToImage() {
    ForEachGroup([&](T* image, const Matrix& weight, const Matrix& maps) {
      std::vector<T> columns(static_cast<size_t>(channels_ * kernel_ * positions_));
      AddProduct(Columns(columns), weight.Transposed(), maps);
      ForEachTap([&](int64_t column, int64_t pixel) {
        image[pixel] += columns[static_cast<size_t>(column)];
      });
    });
  }
  /// Adds to the weights.
  void ToWeight() {
    ForEachGroup([&](T* image, const Matrix& weight, const Matrix& maps) {
      std::vector<T> columns = Unroll(image);
      AddProduct(weight, maps, Columns(columns).Transposed());
    });
  }

 private:
  using Matrix = MatrixView<T>;

  template <typename F>
  void ForEachGroup(F f) {
    for (int64_t i = 0; i < batch_ * groups_; ++i) {
      const int64_t g = i % groups_;
      f(image_ + i * channels_ * pixels_,
        Matrix{.data = weight_ + g * group_maps_ * channels_ * kernel_,
               .rows = group_maps_,
               .columns = channels_ * kernel_},
        Matrix{.data = maps_ + i * group_maps_ * positions_,
               .rows = group_maps_,
               .columns = positions_});
    }
  }

  // Calls f(element of the unrolled image, element of the group's image).
  template <typename F>
  void ForEachTap(F f) const {
    for (int64_t row = 0; row < channels_ * kernel_; ++row) {
      const int64_t channel = row / kernel_, element = row % kernel_;
      for (int64_t position = 0; position < positions_; ++position) {
        const int64_t tap = taps_[static_cast<size_t>(element * positions_ + position)];
        if (tap >= 0) f(row * positions_ + position, channel * pixels_ + tap);
      }
    }
  }

  // A row for each channel and element of the kernel, a column for each position.
  std::vector<T> Unroll(const T* image) const {
    std::vector<T> columns(static_cast<size_t>(channels_ * kernel_ * positions_));
    ForEachTap([&](int64_t column, int64_t pixel) {
      columns[static_cast<size_t>(column)] = image[pixel];
    });
    return columns;
  }

  Matrix Columns(std::vector<T>& columns) const {
    return {.data = columns.data(), .rows = channels_ * kernel_, .columns = positions_};
  }

  T *image_, *weight_, *maps_;
  int64_t batch_, channels_, groups_, group_maps_, kernel_, pixels_, positions_;
  std::vector<int64_t> taps_;
};

/// Adds operand 2 to each channel, in as many parts as there are partial sums.
inline void AddBias(Evaluation& e) {
  if (!e.has_operand(2)) return;
  Tensor& y = e.results[0];
  const AroundDim around = SplitAround(y.dims(), 1);
  const Tensor& bias = e.operand(2);
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t channel = i / around.inner % around.size;
    if (y.is_float()) {
      y.floats()[static_cast<size_t>(i)] +=
          bias.Number(channel) / static_cast<double>(e.partial_over);
    } else {
      int64_t& sum = y.ints()[static_cast<size_t>(i)];
      const int64_t part = bias.ints()[static_cast<size_t>(channel)];
      sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(part));
    }
  }
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_UNROLLED_CONVOLUTION_H_
