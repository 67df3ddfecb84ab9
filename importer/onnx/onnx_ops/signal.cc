#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"

// Signals: Fourier transforms and the matrix of the mel scale, which is a constant; determinants.

namespace orrery::importer {
namespace signal_cc {
namespace {

using ir::OpKind;
using ir::ValueId;

constexpr int64_t kMaxLength = int64_t{1} << 24;

// Input i as one known number.
absl::StatusOr<double> KnownNumber(NodeContext& c, int i) {
  const ir::Tensor* known = c.KnownInput(i);
  if (known != nullptr && known->size() == 1) return known->Number(0);
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " is no number that is known beforehand"));
}

absl::StatusOr<int64_t> KnownLength(NodeContext& c, int i) {
  ORRERY_ASSIGN_OR_RETURN(const double length, KnownNumber(c, i));
  if (length >= 1 && length <= static_cast<double>(kMaxLength)) return static_cast<int64_t>(length);
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " is ", length, "; wanted 1 to ", kMaxLength));
}

// Before opset 20 the axis was an attribute.
absl::Status LowerDft(NodeContext& c) {
  int64_t axis = c.opset() < 20 ? c.Int("axis", 1) : -2;
  if (c.has_input(2)) {
    ORRERY_ASSIGN_OR_RETURN(const double given, KnownNumber(c, 2));
    axis = static_cast<int64_t>(given);
  }
  ORRERY_ASSIGN_OR_RETURN(const size_t normal,
                          ir::NormalizeAxis(axis, c.input_type(0).dims.size()));
  ir::AttributeSet attributes = {{"axis", static_cast<int64_t>(normal)}};
  for (const char* flag : {"inverse", "onesided"}) {
    if (c.Int(flag, 0) != 0) attributes.Set(flag, int64_t{1});
  }
  if (c.has_input(1)) {
    ORRERY_ASSIGN_OR_RETURN(const int64_t length, KnownLength(c, 1));
    attributes.Set("length", length);
  }
  return c.Return(c.Op(OpKind::kDft, {c.input(0)}, attributes));
}

// How long the frames of a short-time transform are: as its window, or as it says.
absl::StatusOr<int64_t> FrameLength(NodeContext& c) {
  if (c.has_input(3)) return KnownLength(c, 3);
  if (c.has_input(2) && c.input_type(2).dims.size() == 1) return c.input_type(2).dims[0];
  return absl::InvalidArgumentError("has neither a window nor a frame length");
}

// Frames are gathered, weighted by the window, and transformed.
absl::Status LowerStft(NodeContext& c) {
  const ir::Dims& signal = c.input_type(0).dims;
  ORRERY_ASSIGN_OR_RETURN(const int64_t step, KnownLength(c, 1));
  ORRERY_ASSIGN_OR_RETURN(const int64_t length, FrameLength(c));
  if (signal.size() != 3 || length < 1 || length > signal[1]) {
    return absl::InvalidArgumentError(absl::StrCat("input 0 has ", signal.size(),
                                                   " dimensions and frames are ", length,
                                                   " long; wanted [batch,length,1 or 2]"));
  }
  const int64_t frames = (signal[1] - length) / step + 1;
  if (frames > kMaxLength / length) {
    return absl::InvalidArgumentError(absl::StrCat(frames, " frames are too many"));
  }
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < frames * length; ++i) positions.push_back(i / length * step + i % length);
  ORRERY_ASSIGN_OR_RETURN(
      const ValueId index,
      c.Constant(ir::Tensor::OfInts(ir::DType::kI64, {frames, length}, std::move(positions))));
  ORRERY_ASSIGN_OR_RETURN(ValueId framed,
                          c.Op(OpKind::kGather, {c.input(0), index}, {{"axis", int64_t{1}}}));
  if (c.has_input(2)) {
    ORRERY_ASSIGN_OR_RETURN(const ValueId window, c.Op(OpKind::kUnsqueeze, {c.input(2)},
                                                       {{"axes", std::vector<int64_t>{1}}}));
    ORRERY_ASSIGN_OR_RETURN(framed, c.Op(OpKind::kMul, {framed, window}));
  }
  ir::AttributeSet attributes = {{"axis", int64_t{2}}};
  if (c.Int("onesided", 1) != 0) attributes.Set("onesided", int64_t{1});
  return c.Return(c.Op(OpKind::kDft, {framed}, attributes));
}

absl::StatusOr<ir::DType> OutputType(NodeContext& c) {
  const int64_t type = c.Int("output_datatype", onnx::TensorProto::FLOAT);
  const bool is_int = type > 0 && type <= std::numeric_limits<int>::max();
  return ElementType(is_int ? static_cast<int>(type) : 0);
}

absl::Status ReturnNumbers(NodeContext& c, const ir::Dims& dims,
                           const std::vector<double>& values) {
  ORRERY_ASSIGN_OR_RETURN(const ir::DType dtype, OutputType(c));
  ir::Tensor tensor(dtype, dims);
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.SetNumber(static_cast<int64_t>(i), values[i]);
  }
  tensor.RoundToDType();
  return c.Return(c.Constant(tensor));
}

struct MelScale {
  int64_t bands, length;
  double rate, lower, upper;
};

absl::StatusOr<MelScale> ReadMelScale(NodeContext& c) {
  MelScale mel;
  ORRERY_ASSIGN_OR_RETURN(mel.bands, KnownLength(c, 0));
  ORRERY_ASSIGN_OR_RETURN(mel.length, KnownLength(c, 1));
  ORRERY_ASSIGN_OR_RETURN(mel.rate, KnownNumber(c, 2));
  ORRERY_ASSIGN_OR_RETURN(mel.lower, KnownNumber(c, 3));
  ORRERY_ASSIGN_OR_RETURN(mel.upper, KnownNumber(c, 4));
  if (mel.rate > 0 && mel.lower >= 0 && mel.upper >= mel.lower && mel.upper < 1e12 &&
      mel.bands < kMaxLength / mel.length) {
    return mel;
  }
  return absl::InvalidArgumentError("rate and edges make no mel scale of a moderate size");
}

// Edges of the bands, as bins of the spectrum.
std::vector<int64_t> MelEdges(const MelScale& mel) {
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = to_mel(mel.lower);
  const double step = (to_mel(mel.upper) - low) / static_cast<double>(mel.bands + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < mel.bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + low) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(mel.length + 1) * hertz / mel.rate);
    edges.push_back(static_cast<int64_t>(std::min(bin, static_cast<double>(kMaxLength))));
  }
  return edges;
}

// Triangles that rise from one edge to the next and fall to the one behind it.
absl::Status LowerMelWeightMatrix(NodeContext& c) {
  ORRERY_ASSIGN_OR_RETURN(const MelScale mel, ReadMelScale(c));
  const std::vector<int64_t> edges = MelEdges(mel);
  const int64_t bins = mel.length / 2 + 1;
  std::vector<double> values(static_cast<size_t>(bins * mel.bands), 0);
  for (int64_t band = 0; band < mel.bands; ++band) {
    const auto edge = edges.begin() + band;
    const auto set = [&](int64_t bin, double value) {
      if (bin < bins) values[static_cast<size_t>(bin * mel.bands + band)] = value;
    };
    const int64_t rise = edge[1] - edge[0], fall = edge[2] - edge[1];
    if (rise == 0) set(edge[1], 1);
    for (int64_t bin = edge[0]; bin <= edge[1] && rise > 0; ++bin) {
      set(bin, static_cast<double>(bin - edge[0]) / static_cast<double>(rise));
    }
    for (int64_t bin = edge[1]; bin < edge[2] && fall > 0; ++bin) {
      set(bin, static_cast<double>(edge[2] - bin) / static_cast<double>(fall));
    }
  }
  return ReturnNumbers(c, {bins, mel.bands}, values);
}

absl::Status LowerDet(NodeContext& c) { return c.Return(c.Op(OpKind::kDet, {c.input(0)})); }

}  // namespace
}  // namespace signal_cc

extern const OnnxOp kDFTOnnxOp = {.type = "DFT", .since_opset = 17, .lower = signal_cc::LowerDft};
extern const OnnxOp kSTFTOnnxOp = {
    .type = "STFT", .inputs = 2, .since_opset = 17, .lower = signal_cc::LowerStft};
extern const OnnxOp kMelWeightMatrixOnnxOp = {.type = "MelWeightMatrix",
                                              .inputs = 5,
                                              .since_opset = 17,
                                              .lower = signal_cc::LowerMelWeightMatrix};
extern const OnnxOp kDetOnnxOp = {.type = "Det", .since_opset = 11, .lower = signal_cc::LowerDet};

}  // namespace orrery::importer
