#ifndef ORRERY_IR_OPS_COST_TEST_UTIL_H_
#define ORRERY_IR_OPS_COST_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ir/infer_test_util.h"
#include "ir/op_info.h"

// What ops cost on whole tensors, as tables of text. For tests only.

namespace orrery::ir {

/// One application of an op, and how many flops, or bytes, its record counts.
struct CostRow {
  std::string op;        // with its attributes: "Transpose {perm=[1, 0]}"
  std::string operands;  // types, "; " between
  double cost;
};

/// Flops of an op over operand types: none where its record has none.
inline double FlopsOf(const std::string& op, const std::string& types) {
  const AppliedOp made = Apply(op, types);
  EXPECT_TRUE(made.status.ok()) << op << " " << types << ": " << made.status;
  const OpInfo& info = GetOpInfo(made.kind);
  if (!made.status.ok() || info.flops == nullptr) return 0;
  return made.With([&](const OpTypes& applied) { return info.flops(applied, made.results); });
}

/// Bytes of an op over operand types, of which its record must say something.
inline double BytesOf(const std::string& op, const std::string& types) {
  const AppliedOp made = Apply(op, types);
  EXPECT_TRUE(made.status.ok()) << op << " " << types << ": " << made.status;
  const OpInfo& info = GetOpInfo(made.kind);
  EXPECT_NE(info.bytes, nullptr) << op;
  if (!made.status.ok() || info.bytes == nullptr) return 0;
  return static_cast<double>(
      made.With([&](const OpTypes& applied) { return info.bytes(applied, made.results); }));
}

inline void ExpectFlops(const std::vector<CostRow>& rows) {
  for (const CostRow& row : rows) {
    EXPECT_EQ(FlopsOf(row.op, row.operands), row.cost) << row.op << " " << row.operands;
  }
}

inline void ExpectBytes(const std::vector<CostRow>& rows) {
  for (const CostRow& row : rows) {
    EXPECT_EQ(BytesOf(row.op, row.operands), row.cost) << row.op << " " << row.operands;
  }
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_OPS_COST_TEST_UTIL_H_
