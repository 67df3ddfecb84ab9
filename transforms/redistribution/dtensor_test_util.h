#ifndef ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_TEST_UTIL_H_

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "support/paths_test_util.h"
#include "transforms/redistribution/dtensor.h"

// Problems for the tests of DTensor's move set.

namespace orrery::transforms::redistribution {

using Placements = std::vector<std::string>;  // "S0", "R", "Pmax" for each mesh axis

inline const nlohmann::json& DtensorGolden() {
  static const auto& golden = *new nlohmann::json([] {
    std::ifstream file(absl::StrCat(SourceDir(), "/tests/data/redistribution_dtensor.json"));
    return nlohmann::json::parse(file);
  }());
  return golden;
}

/// In which infinity is spelled "inf".
inline double NumberOf(const nlohmann::json& json) {
  return json.is_string() ? std::stod(json.get<std::string>()) : json.get<double>();
}

inline ir::Mesh MeshOf(const std::vector<int64_t>& sizes) {
  std::vector<ir::Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({absl::StrCat("a", i), sizes[i]});
  return ir::Mesh(axes);
}

inline ir::Reduction ReductionOf(const std::string& name) {
  const std::vector<std::string> names = {"sum", "avg", "product", "max", "min"};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<ir::Reduction>(i);
  }
  ADD_FAILURE() << "no reduction " << name;
  return ir::Reduction::kSum;
}

inline ir::Sharding ShardingOf(const Placements& placements, size_t rank) {
  ir::Sharding sharding;
  for (ir::AxisIndex axis = 0; axis < static_cast<ir::AxisIndex>(placements.size()); ++axis) {
    const std::string& placement = placements[axis];
    if (placement[0] == 'S') {
      const auto dim = static_cast<size_t>(std::stoi(placement.substr(1)));
      ir::AxisList axes = sharding.at(dim);
      axes.push_back(axis);
      sharding.Set(dim, rank, axes);
    } else if (placement[0] == 'P') {
      sharding.partial.push_back(axis);
      sharding.reductions[axis] = ReductionOf(placement.substr(1));
    }
  }
  return sharding;
}

/// `order` has the axes of some tensor dimensions: {"0": [1, 0]}.
inline void Reorder(ir::Sharding& sharding, const nlohmann::json& order, size_t rank) {
  for (const auto& [dim, axes] : order.items()) {
    ir::AxisList list;
    for (const auto& axis : axes) list.push_back(axis.get<ir::AxisIndex>());
    sharding.Set(std::stoul(dim), rank, list);
  }
}

inline Problem ProblemOf(const std::vector<int64_t>& mesh, const std::vector<int64_t>& dims,
                         const Placements& from, const Placements& to) {
  return {.mesh = MeshOf(mesh),
          .dims = ir::Dims(dims.begin(), dims.end()),
          .from = ShardingOf(from, dims.size()),
          .to = ShardingOf(to, dims.size())};
}

inline Problem ProblemOf(const nlohmann::json& golden) {
  const auto dims = golden["shape"].get<std::vector<int64_t>>();
  Problem problem = ProblemOf(golden["mesh"].get<std::vector<int64_t>>(), dims,
                              golden["src"].get<Placements>(), golden["dst"].get<Placements>());
  problem.itemsize = golden["itemsize"];
  if (golden.contains("src_shard_order")) {
    Reorder(problem.from, golden["src_shard_order"], dims.size());
    Reorder(problem.to, golden["dst_shard_order"], dims.size());
  }
  return problem;
}

/// 1 to `most_axes` axes, 0 to 3 dimensions of uneven sizes, axes of a dimension in any order.
inline Problem RandomProblem(std::mt19937& random, int most_axes) {
  const auto draw = [&](int count) {
    return static_cast<int>(random() % static_cast<uint32_t>(count));
  };
  std::vector<int64_t> mesh, dims;
  for (int i = draw(most_axes); i >= 0; --i) mesh.push_back(1 + draw(4));
  for (int i = draw(4); i > 0; --i) dims.push_back(draw(20) == 0 ? 0 : 1 + draw(5000));
  Problem problem = {.mesh = MeshOf(mesh),
                     .dims = ir::Dims(dims.begin(), dims.end()),
                     .itemsize = 1 << draw(12),
                     .from = {},
                     .to = {}};
  const auto reduction = static_cast<ir::Reduction>(draw(5));
  for (ir::Sharding* sharding : {&problem.from, &problem.to}) {
    std::vector<ir::AxisIndex> axes;
    for (size_t axis = 0; axis < mesh.size(); ++axis) {
      axes.push_back(static_cast<ir::AxisIndex>(axis));
    }
    std::shuffle(axes.begin(), axes.end(), random);
    std::vector<ir::AxisIndex> partial;
    for (const ir::AxisIndex axis : axes) {
      const int role = draw(4);
      if (role >= 2 && !dims.empty()) {
        const auto dim = static_cast<size_t>(draw(static_cast<int>(dims.size())));
        ir::AxisList list = sharding->at(dim);
        list.push_back(axis);
        sharding->Set(dim, dims.size(), list);
      } else if (role == 1) {
        partial.push_back(axis);
      }
    }
    std::sort(partial.begin(), partial.end());
    for (const ir::AxisIndex axis : partial) {
      sharding->partial.push_back(axis);
      sharding->reductions[axis] = reduction;
    }
  }
  return problem;
}

inline std::unique_ptr<const MoveSet> DtensorOf(const Problem& problem,
                                                const DtensorOptions& options = {}) {
  auto move_set = MakeDtensor(problem, options);
  EXPECT_TRUE(move_set.ok()) << move_set.status();
  return *std::move(move_set);
}

inline RedistributionPlan PlanOf(const Problem& problem, const DtensorOptions& options = {}) {
  const auto plan = CheapestPlan(*DtensorOf(problem, options), PackedLayout(problem.from),
                                 PackedLayout(problem.to));
  EXPECT_TRUE(plan.has_value());
  return plan.value_or(RedistributionPlan());
}

/// "reduce-scatter(1) to 0": a plan's steps as a person reads them.
inline std::vector<std::string> StepsOf(const RedistributionPlan& plan) {
  std::vector<std::string> steps;
  for (const PlannedStep& planned : plan.steps) {
    std::string text = absl::StrCat(ToString(planned.step.kind), "(");
    for (const ir::AxisIndex axis : planned.step.axes.axes()) {
      absl::StrAppend(&text, text.back() == '(' ? "" : ",", int{axis});
    }
    absl::StrAppend(&text, ")");
    if (planned.step.from >= 0) absl::StrAppend(&text, " from ", int{planned.step.from});
    if (planned.step.to >= 0) absl::StrAppend(&text, " to ", int{planned.step.to});
    steps.push_back(text);
  }
  return steps;
}

}  // namespace orrery::transforms::redistribution

#endif  // ORRERY_TRANSFORMS_REDISTRIBUTION_DTENSOR_TEST_UTIL_H_
