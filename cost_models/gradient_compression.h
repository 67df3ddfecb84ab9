#ifndef ORRERY_COST_MODELS_GRADIENT_COMPRESSION_H_
#define ORRERY_COST_MODELS_GRADIENT_COMPRESSION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/collectives/collective_kind.h"
#include "ir/type.h"
#include "support/units.h"

// Gradients in fewer bytes: what data-parallel ranks exchange in the place of an all-reduce, what
// kernels do around that, and what ranks keep of what they left out (error feedback: Seide et al.
// 2014, Karimireddy et al. 2019). It changes the arithmetic, so nobody gets it unasked.

namespace orrery::cost_models {

/// How gradients are compressed where data-parallel ranks add them up.
struct GradientCompression {
  /// Which of them.
  enum class Method : uint8_t {
    kNone,
    /// The largest elements, and where they stand (Stich et al. 2018; Lin et al., "Deep Gradient
    /// Compression", ICLR 2018).
    kTopK,
    /// 8 bits an element and a scale of 4 bytes for each 256, added up by an all-to-all and an
    /// all-gather, as sums have no 8 bits (ZeRO++'s qgZ, Wang et al. 2023; DeepSpeed's compressed
    /// all-reduce).
    kEightBits,
    /// Two factors of low rank of each matrix (Vogels et al., "PowerSGD", NeurIPS 2019).
    kPowerSgd,
  };
  Method method = Method::kNone;
  double share = 0;  // of the elements that top-k keeps
  int64_t rank = 0;  // of PowerSGD's factors

  /// "none", "top-k:0.01", "8-bit", "power-sgd:4"; InvalidArgument for anything else.
  static absl::StatusOr<GradientCompression> Parse(absl::string_view text);
  /// The text of it.
  std::string ToString() const;
  explicit operator bool() const { return method != Method::kNone; }

  friend bool operator==(const GradientCompression&, const GradientCompression&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const GradientCompression& c) {
    return H::combine(std::move(h), c.method, c.share, c.rank);
  }
};

/// Some gradients as a rank has them: their elements, and of the matrices that PowerSGD compresses
/// among them elements, rows and columns.
struct GradientSize {
  int64_t elements = 0;
  int64_t of_matrices = 0;
  int64_t rows = 0, columns = 0;

  GradientSize& operator+=(const GradientSize& other);
};

/// That of a gradient of these dims. A matrix has the first of them as rows, all others as columns;
/// it is compressed where that halves it at least, as PyTorch's hook does: 2 r (m + n) < m n.
GradientSize SizeOfGradient(const GradientCompression& compression, const ir::Dims& dims);

/// A kernel, or a collective of so many bytes a rank (CollectiveKind says of what).
struct CompressionStage {
  absl::string_view name;  // "top-k"
  Flops flops = {};        // of a kernel
  Bytes moved = {};        // likewise, read and written
  std::optional<CollectiveKind> collective = {};
  Bytes size = {};  // of a collective
};

/// What stands in the place of the all-reduce of gradients among `ranks`, in its order, of elements
/// of `dtype`. With n elements of s bytes, k = ⌈share n⌉, b = n + 4 ⌈n / 256⌉:
///
/// - top-k: a kernel adds what was left out and chooses, 5 n s + k (2 s + 4) bytes; an all-gather,
///   k (s + 4) a rank, as each rank has chosen others; a kernel adds them up in zeros, n s + p k
///   (3 s + 4).
/// - 8-bit: a kernel, 3 n s + b; an all-to-all of b; a kernel that adds up and rounds again, b +
/// b/p
///   + 2 n s / p; an all-gather of b; a kernel, b + n s.
/// - power-sgd: of matrices M = (m n) with r columns in P and Q: kernels of 4 M + (m + n) r, 2 M r
///   flops, then all-reduce of P; of M + (3 m + n) r, 2 M r + 2 m r² flops, then of Q; of
///   3 M + (m + n) r, 2 M r flops, in elements. All else by an all-reduce as it is.
std::vector<CompressionStage> StagesOf(const GradientCompression& compression,
                                       const GradientSize& size, ir::DType dtype, int64_t ranks);

/// What a rank keeps from step to step: of what was left out the elements (top-k n s; 8-bit n s and
/// n s / p of sums; PowerSGD those of matrices), and PowerSGD's Q to begin with.
Bytes KeptBytes(const GradientCompression& compression, const GradientSize& size, ir::DType dtype,
                int64_t ranks);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_GRADIENT_COMPRESSION_H_
