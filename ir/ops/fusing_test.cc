#include "ir/ops/fusing.h"

#include <gtest/gtest.h>

#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::ir {
namespace fusing_test_cc {
namespace {

TEST(Fusing, OfKinds) {
  for (const OpKind kind : {OpKind::kAdd, OpKind::kGelu, OpKind::kUnaryGrad, OpKind::kCast,
                            OpKind::kWhere, OpKind::kLess, OpKind::kDropout, OpKind::kDropoutGrad,
                            OpKind::kSwiGlu, OpKind::kRotary, OpKind::kConcat}) {
    EXPECT_EQ(FusingOf(kind), Fusing::kElements) << GetOpInfo(kind).name;
  }
  for (const OpKind kind :
       {OpKind::kMatMul, OpKind::kLayerNorm, OpKind::kSoftmax, OpKind::kAttention, OpKind::kLoss,
        OpKind::kLossGrad, OpKind::kGather, OpKind::kReshape, OpKind::kIdentity, OpKind::kAllReduce,
        OpKind::kAdam, OpKind::kSumLoss}) {
    EXPECT_EQ(FusingOf(kind), Fusing::kNever) << GetOpInfo(kind).name;
  }
  EXPECT_EQ(FusingOf(OpKind::kReduceMean), Fusing::kRows);
}

}  // namespace
}  // namespace fusing_test_cc
}  // namespace orrery::ir
