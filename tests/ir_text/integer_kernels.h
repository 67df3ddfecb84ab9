#ifndef ORRERY_TESTS_IR_TEXT_INTEGER_KERNELS_H_
#define ORRERY_TESTS_IR_TEXT_INTEGER_KERNELS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "ir/type.h"

// Small tensors of integers and what the ops make of them, for tests that execute functions.

namespace orrery::ir {

struct Tensor {
  Dims dims;
  std::vector<int64_t> elements;  // last dimension fastest

  friend bool operator==(const Tensor&, const Tensor&) = default;
};
using Tensors = std::vector<Tensor>;
using Kernel = std::function<Tensors(const Tensors&)>;
using Index = std::vector<int64_t>;

inline Tensor Zeros(const Dims& dims) {
  return {dims, std::vector<int64_t>(static_cast<size_t>(ElementCount(dims)))};
}

// The element at `index`; dimensions of size 1, and leading ones that are not there, are broadcast.
inline int64_t& At(Tensor& tensor, const Index& index) {
  int64_t offset = 0;
  const size_t skip = index.size() - tensor.dims.size();
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    offset = offset * tensor.dims[d] + (tensor.dims[d] == 1 ? 0 : index[skip + d]);
  }
  return tensor.elements[static_cast<size_t>(offset)];
}
inline int64_t At(const Tensor& tensor, const Index& index) {
  return At(const_cast<Tensor&>(tensor), index);
}

inline void ForEachIndex(const Dims& dims, const std::function<void(const Index&)>& visit) {
  Index index(dims.size(), 0);
  for (int64_t i = 0; i < ElementCount(dims); ++i) {
    int64_t rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
    visit(index);
  }
}

// Kernels, written from the meaning of each op.

inline Tensors Multiply(const Tensors& in) {  // x [..,m,k] times w [k,n]
  Dims dims = in[0].dims;
  dims.back() = in[1].dims[1];
  Tensor y = Zeros(dims);
  ForEachIndex(in[0].dims, [&](const Index& xi) {
    for (int64_t n = 0; n < dims.back(); ++n) {
      Index yi = xi;
      yi.back() = n;
      At(y, yi) += At(in[0], xi) * At(in[1], {xi.back(), n});
    }
  });
  return {y};
}

inline Tensor Swapped(const Tensor& x) {
  Dims dims = x.dims;
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  Tensor y = Zeros(dims);
  ForEachIndex(x.dims, [&](Index index) {
    const int64_t element = At(x, index);
    std::swap(index[index.size() - 1], index[index.size() - 2]);
    At(y, index) = element;
  });
  return y;
}

inline Tensors MultiplyGradients(const Tensors& in) {  // dx = dy w^T, dw = x^T dy over all rows
  Tensor dx = Zeros(in[0].dims), dw = Zeros(in[1].dims);
  ForEachIndex(in[0].dims, [&](const Index& xi) {
    for (int64_t n = 0; n < in[1].dims[1]; ++n) {
      Index yi = xi;
      yi.back() = n;
      At(dx, xi) += At(in[2], yi) * At(in[1], {xi.back(), n});
      At(dw, {xi.back(), n}) += At(in[2], yi) * At(in[0], xi);
    }
  });
  return {dx, dw};
}

inline Kernel Elementwise(std::function<int64_t(int64_t, int64_t)> function) {
  return [function](const Tensors& in) -> Tensors {
    const Tensor &x = in.front(), &y = in.back();
    Dims dims = x.dims.size() < y.dims.size() ? y.dims : x.dims;
    for (size_t d = 1; d <= std::min(x.dims.size(), y.dims.size()); ++d) {
      dims[dims.size() - d] = std::max(x.dims[x.dims.size() - d], y.dims[y.dims.size() - d]);
    }
    Tensor z = Zeros(dims);
    ForEachIndex(dims,
                 [&](const Index& index) { At(z, index) = function(At(x, index), At(y, index)); });
    return {z};
  };
}

inline Kernel Permute(std::vector<size_t> perm) {
  return [perm](const Tensors& in) -> Tensors {
    Dims dims;
    for (const size_t from : perm) dims.push_back(in[0].dims[from]);
    Tensor y = Zeros(dims);
    ForEachIndex(in[0].dims, [&](const Index& index) {
      Index to;
      for (const size_t from : perm) to.push_back(index[from]);
      At(y, to) = At(in[0], index);
    });
    return {y};
  };
}

inline Kernel SumOver(std::vector<size_t> axes) {
  return [axes](const Tensors& in) -> Tensors {
    const auto kept = [&](size_t d) {
      return std::find(axes.begin(), axes.end(), d) == axes.end();
    };
    Dims dims;
    for (size_t d = 0; d < in[0].dims.size(); ++d) {
      if (kept(d)) dims.push_back(in[0].dims[d]);
    }
    Tensor y = Zeros(dims);
    ForEachIndex(in[0].dims, [&](const Index& index) {
      Index to;
      for (size_t d = 0; d < index.size(); ++d) {
        if (kept(d)) to.push_back(index[d]);
      }
      At(y, to) += At(in[0], index);
    });
    return {y};
  };
}

}  // namespace orrery::ir

#endif  // ORRERY_TESTS_IR_TEXT_INTEGER_KERNELS_H_
