#include "lowering/blocks/earlier_rows.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"

namespace orrery::lowering {
namespace earlier_rows_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// Rows of earlier slices in the last one.
struct EarlierRows {
  int64_t bytes = 0;
  OpId last;  // that reads them
};

// So many of `rows` rows that take `bytes`; both may be large.
int64_t BytesOfRows(int64_t bytes, int64_t rows, int64_t count) {
  return bytes / rows * count + bytes % rows * count / rows;
}

// Uses of buffers by ops; where a buffer has more, the caller holds it after the function, too.
IdTable<ValueId, int32_t> CountReads(const Function& function, const TemplateBuffers& buffers) {
  IdTable<ValueId, int32_t> reads(function.value_limit(), 0);
  for (const OpId op : function.order()) {
    for (const ValueId operand : function.operands(op)) ++reads[buffers.buffer[operand]];
  }
  return reads;
}

bool HasRowsThatNobodyElseKeeps(const Function& function, OpId op) {
  return function.kind(op) == OpKind::kExtendRows &&
         function.attributes(op).Find("later") != nullptr;
}

int64_t RowsOf(const Function& function, OpId op) {
  const auto dim = static_cast<size_t>(function.attributes(op).Int("dim", 1));
  return function.type(function.operands(op)[0]).dims[dim];
}

}  // namespace
}  // namespace earlier_rows_cc

void KeepEarlierRows(const ir::Function& function, bool copies,
                     const IdTable<ir::TypeId, int64_t>& bytes, TemplateBuffers& buffers) {
  const auto keeps = [&](ir::OpId op) {
    return earlier_rows_cc::HasRowsThatNobodyElseKeeps(function, op);
  };
  if (std::ranges::none_of(function.order(), keeps)) return;
  const IdTable<ir::ValueId, int32_t> reads = earlier_rows_cc::CountReads(function, buffers);
  absl::flat_hash_map<ir::ValueId, earlier_rows_cc::EarlierRows> found;  // by buffer
  absl::flat_hash_map<ir::ValueId, ir::ValueId> buffer_behind;  // of what views rows of all slices
  for (const ir::OpId op : function.order()) {
    for (const ir::ValueId operand : function.operands(op)) {
      const auto behind = buffer_behind.find(operand);
      if (behind == buffer_behind.end()) continue;
      const ir::ValueId buffer = behind->second;
      found[buffer].last = op;
      if (!function.info(op).strided_view) continue;
      for (int32_t i = 0; i < function.result_count(op); ++i) {
        buffer_behind[function.result(op, i)] = buffer;
      }
    }
    if (!keeps(op)) continue;
    const ir::ValueId buffer = buffers.buffer[function.operands(op)[0]];
    if (buffers.uses[buffer] > reads[buffer]) continue;
    const int64_t earlier = function.attributes(op).Int("earlier", 0);
    const int64_t own = bytes[function.type_id(buffer)];
    found[buffer] = {
        .bytes = earlier_rows_cc::BytesOfRows(own, earlier_rows_cc::RowsOf(function, op), earlier),
        .last = op};
    if (!copies) buffer_behind[function.result(op)] = buffer;
    if (function.attributes(op).Int("later", 0) > 0) ++buffers.uses[buffer];
  }
  for (const auto& [buffer, rows] : found) {
    const bool stays = buffers.uses[buffer] > reads[buffer];  // of the last slice nothing does
    if (!stays && rows.bytes > 0) buffers.earlier_rows[rows.last] += rows.bytes;
  }
}

int64_t ChangeOfSums(const ir::Function& function, ir::OpId op,
                     const IdTable<ir::TypeId, int64_t>& bytes) {
  const int64_t rows = bytes[function.type_id(function.result(op))];
  const bool last = function.attributes(op).Int("later", 0) == 0;
  return last ? bytes[function.type_id(function.operands(op)[0])] - rows : -rows;
}

int64_t BytesCollectedBefore(const ir::Function& function, ir::OpId op, int64_t bytes) {
  const ir::AttributeSet& set = function.attributes(op);
  const auto dim = static_cast<size_t>(set.Int("dim", 0));
  const int64_t rows = function.type(function.operands(op)[1]).dims[dim];
  return earlier_rows_cc::BytesOfRows(bytes, rows, set.Int("begin", 0));
}

}  // namespace orrery::lowering
