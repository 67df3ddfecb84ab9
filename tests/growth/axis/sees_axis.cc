#include <boost/program_options.hpp>
#include <iostream>

#include "search/spaces/space.h"
#include "tools/plan_flags.h"
#include "transforms/plan/axis_page.h"
#include "transforms/plan/plan_text.h"

// What follows from the record of an axis, for whatever axis the command line names: sees_axis FLAG
// VALUE,VALUE prints its row of docs/command_line.md, the flag of `grid_search`, the plans of that
// search, and the last column of each.

namespace sees_axis_cc {
namespace {

using orrery::transforms::ParallelPlan;

void Check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "sees_axis: " << what << "\n";
  std::exit(1);
}

}  // namespace
}  // namespace sees_axis_cc

int main(int argc, char** argv) {
  using sees_axis_cc::Check;
  using sees_axis_cc::ParallelPlan;
  Check(argc == 3, "wanted FLAG VALUES");
  const std::string flag = std::string("--") + argv[1];
  std::cout << AxisRow(*orrery::transforms::FindAxis(argv[1]));
  boost::program_options::options_description options;
  orrery::tools::PlanFlags flags;
  AddPlanFlags(options, orrery::tools::PlanForm::kSpace, {}, flags);
  std::cout << options.find(argv[1], false).description() << "\n";
  const std::vector<std::string> words = {flag, argv[2],           "--dp", "1", "--hp", "1", "--pp",
                                          "1",  "--micro-batches", "1"};
  boost::program_options::variables_map values;
  store(boost::program_options::command_line_parser(words).options(options).run(), values);
  notify(values);
  const auto space = ReadSpace(flags, {});
  Check(space.ok(), "no such space");
  const auto plans = Enumerate(*space, {.devices = 1, .batch_size = 1});
  Check(plans.ok(), "no such plans");
  for (const ParallelPlan& plan : *plans) {
    const std::string text = ToString(plan);
    Check(*orrery::transforms::ParsePlan(text) == plan, "a plan is not what its text says");
    const auto column = orrery::transforms::ColumnsOf(plan).behind.back();
    std::cout << text << " | " << column.name << " " << std::get<std::string>(column.value) << "\n";
  }
}
