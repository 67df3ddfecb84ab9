#ifndef ORRERY_CLUSTER_RATE_FIGURES_H_
#define ORRERY_CLUSTER_RATE_FIGURES_H_

#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cluster/kernel_rates.h"
#include "support/units.h"

// The figures of KernelRates by name: what reads, prints, checks and fits them goes over one table.

namespace orrery::cluster {

/// One figure of some rates.
struct RateFigure {
  std::string path;           // as in a cluster file: "half.efficiency", "attention.cudnn.fill"
  absl::string_view meaning;  // and unit, for people
  std::variant<double*, Duration*, int*, bool*> value;
  double least = 0, most = 1;  // of a number; of a duration in microseconds
};

/// All figures of `rates`, in the order of the struct; they stay where they are, so `rates` must
/// outlive what is returned.
std::vector<RateFigure> FiguresOf(KernelRates& rates);

/// As a number; a duration in microseconds, true as 1.
double NumberOf(const RateFigure& figure);
/// Sets it to that number, no less than its least and no more than its most.
void SetNumber(const RateFigure& figure, double number);

/// Whether it lies in its range: InvalidArgument of one line, "got 1.2; wanted 0.001 to 1".
absl::Status CheckFigure(const RateFigure& figure);

}  // namespace orrery::cluster

#endif  // ORRERY_CLUSTER_RATE_FIGURES_H_
