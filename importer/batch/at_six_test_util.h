#ifndef ORRERY_IMPORTER_BATCH_AT_SIX_TEST_UTIL_H_
#define ORRERY_IMPORTER_BATCH_AT_SIX_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <string>

#include "importer/batch/rebatch.h"
#include "importer/batch/rebind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/check.h"

namespace orrery::importer {

/// The function at a batch of 6, or why there is none.
inline std::string AtSix(const std::string& text) {
  const auto function = ir::ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  const auto free = MakeBatchFree(*function);
  if (!free.ok()) return std::string(free.status().message());
  const auto six = WithBatch(*free, 6);
  if (!six.ok()) return std::string(six.status().message());
  EXPECT_TRUE(ir::Verify(*six).ok()) << ir::Verify(*six);
  return ir::Print(*six);
}

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BATCH_AT_SIX_TEST_UTIL_H_
