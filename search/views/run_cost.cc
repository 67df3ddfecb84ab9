#include "search/views/run_cost.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/number_text.h"
#include "transforms/plan/plan_text.h"

namespace orrery::search {

std::string AmountText(double amount) {
  if (amount >= 100) return absl::StrFormat("%.0f", amount);
  return absl::StrFormat("%.*f", amount >= 10 ? 1 : amount >= 1 ? 2 : 3, amount);
}

std::string RunText(const Setting& setting, const SearchRows& rows, int64_t top) {
  const std::vector<const Result*> ranked = Ranked(rows);
  const size_t shown = std::min(ranked.size(), static_cast<size_t>(std::max<int64_t>(0, top)));
  if (setting.run_samples < 1 || shown == 0) return "";
  const bool tokens = setting.tokens_a_sample > 1, priced = setting.device_hour > 0;
  std::string text = absl::StrFormat(
      "\nthe whole run: %d steps of %d %s\n%12s %7s %16s %9s %13s%s\n",
      CostOfRun(setting, *ranked.front()).steps, setting.batch_size * setting.tokens_a_sample,
      tokens ? "tokens" : "samples", "step", "MFU", tokens ? "tokens/s/device" : "samples/s/device",
      "days", "device-hours", priced ? "         price" : "");
  for (size_t i = 0; i < shown; ++i) {
    const Result& result = *ranked[i];
    const RunCost cost = CostOfRun(setting, result);
    const double rate =
        tokens ? result.figures.tokens_per_s : result.figures.throughput_samples_per_s;
    absl::StrAppendFormat(&text, "%12s %6.1f%% %16s %9s %13s%s  %s\n", ToString(result.step_time),
                          100 * result.figures.mfu,
                          ShortNumber(rate / static_cast<double>(result.plan.ranks())),
                          AmountText(cost.days()), AmountText(cost.device_hours),
                          priced ? absl::StrFormat(" %13s", AmountText(cost.price)) : "",
                          ToString(result.plan, setting.base));
  }
  return text;
}

}  // namespace orrery::search
