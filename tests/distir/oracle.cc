#include "tests/distir/oracle.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace orrery::distir {
namespace oracle_cc {
namespace {

constexpr double kFlops = 1.4e13, kMemory = 9e11, kLaunch = 1e-5, kGigabit = 1.25e8;

struct Step {
  bool forward = true;
  int64_t stage = 0;
  int64_t microbatch = 0;
};

// DistIR's scheduler, with its lists: in each timestep each stage alternates, first ready first.
std::vector<std::map<int64_t, Step>> Timesteps(int64_t stages, int64_t microbatches) {
  std::map<int64_t, std::vector<Step>> ready;
  std::map<int64_t, bool> last_was_forward;
  for (int64_t m = 0; m < microbatches; ++m) ready[0].push_back({true, 0, m});
  std::vector<std::map<int64_t, Step>> timesteps;
  for (int64_t scheduled = 0; scheduled < 2 * stages * microbatches;) {
    std::map<int64_t, Step> now;
    for (auto& [stage, steps] : ready) {
      if (steps.empty()) continue;
      const bool want = !last_was_forward[stage];
      auto chosen = std::find_if(steps.begin(), steps.end(),
                                 [&](const Step& step) { return step.forward == want; });
      if (chosen == steps.end()) chosen = steps.begin();
      last_was_forward[stage] = chosen->forward;
      now[stage] = *chosen;
      steps.erase(chosen);
      ++scheduled;
    }
    for (const auto& [stage, step] : now) {
      const int64_t next = step.forward ? std::min(stage + 1, stages - 1) : stage - 1;
      const bool forward = step.forward && stage + 1 < stages;
      if (next >= 0) ready[next].push_back({forward, next, step.microbatch});
    }
    timesteps.push_back(std::move(now));
  }
  return timesteps;
}

class Simulation {
 public:
  explicit Simulation(const Case& c)
      : c_(c),
        rows_(c.batch / c.dp / c.microbatches),
        layers_a_stage_(c.layers / c.pp),
        clock_(static_cast<size_t>(c.ranks()), 0) {}

  Figures Run() {
    const auto timesteps = Timesteps(c_.pp, c_.microbatches);
    for (int64_t i = 0; i < c_.dp; ++i) {
      products_.assign(static_cast<size_t>(c_.microbatches), 0);
      for (const auto& now : timesteps) {
        for (const auto& [stage, step] : now) Compute(i, step);
        for (const auto& [stage, step] : now) Send(i, step);
      }
    }
    ReduceGradients();
    UpdateWeights();
    figures_.makespan_s = *std::max_element(clock_.begin(), clock_.end());
    figures_.finish_s = clock_;
    if (busy_ > 0) figures_.communication_overhead = communication_ / busy_;
    return figures_;
  }

 private:
  // Even layers have their weight split by columns, odd ones by rows.
  int64_t WidthIn(int64_t layer) const { return layer % 2 == 0 ? c_.dim : c_.dim / c_.hp; }
  int64_t WidthOut(int64_t layer) const { return layer % 2 == 0 ? c_.dim / c_.hp : c_.dim; }
  size_t Device(int64_t i, int64_t j, int64_t k) const {
    return static_cast<size_t>(i * c_.hp * c_.pp + j * c_.pp + k);
  }
  std::vector<size_t> HorizontalGroup(int64_t i, int64_t k) const {
    std::vector<size_t> devices;
    for (int64_t j = 0; j < c_.hp; ++j) devices.push_back(Device(i, j, k));
    return devices;
  }

  static double MatMul(int64_t m, int64_t k, int64_t n) {
    const auto read = static_cast<double>(4 * (m * k + k * n));
    return kLaunch + read / kMemory + static_cast<double>(2 * m * k * n) / kFlops;
  }
  static double Elementwise(int64_t n, int operands = 1) {
    return kLaunch + static_cast<double>(4 * operands * n) / kMemory +
           static_cast<double>(n) / kFlops;
  }
  double Transfer(double bytes) const { return bytes / kGigabit / c_.gigabits_per_second; }

  void Each(const char* name, const std::vector<size_t>& devices, double seconds) {
    for (const size_t device : devices) clock_[device] += seconds;
    Count(name, std::ssize(devices), seconds * static_cast<double>(devices.size()));
  }
  // An op of several devices first raises all their clocks to the latest.
  void Together(const char* name, const std::vector<size_t>& devices, double seconds) {
    double start = 0;
    for (const size_t device : devices) start = std::max(start, clock_[device]);
    for (const size_t device : devices) clock_[device] = start + seconds;
    Count(name, 1, seconds * static_cast<double>(devices.size()));
    communication_ += seconds * static_cast<double>(devices.size());
  }
  void Count(const char* name, int64_t ops, double seconds) {
    figures_.ops[name] += ops;
    busy_ += seconds;
  }
  void AllReduce(const std::vector<size_t>& devices, int64_t elements) {
    const auto n = static_cast<double>(devices.size());
    const auto bytes = static_cast<double>(4 * elements);
    Together("MPIAllreduce", devices, Transfer(2 * bytes * (n - 1) / n));
    figures_.allreduce_tensor_bytes += 4 * elements;
  }

  // Every second product of a microbatch is followed by an all-reduce.
  void AfterProduct(int64_t i, const Step& step, int64_t elements) {
    const int64_t products = ++products_[static_cast<size_t>(step.microbatch)];
    if (c_.hp > 1 && products % 2 == 0) AllReduce(HorizontalGroup(i, step.stage), elements);
  }

  // A result of the function over the microbatches: the first is kept, weights are then added,
  // batches put together.
  void Accumulate(int64_t i, const Step& step, bool weight, int64_t elements) {
    const std::vector<size_t> devices = HorizontalGroup(i, step.stage);
    if (step.microbatch > 0) {
      Each(weight ? "Add" : "Concat", devices, weight ? Elementwise(elements, 2) : kLaunch);
    } else if (c_.microbatches > 1) {
      Each("Identity", devices, 0);
    }
  }

  void Compute(int64_t i, const Step& step) {
    const int64_t first = step.stage * layers_a_stage_, end = first + layers_a_stage_;
    if (step.forward) {
      for (int64_t layer = first; layer < end; ++layer) Forward(i, step, layer);
      if (step.stage == c_.pp - 1) Loss(i, step);
    } else {
      for (int64_t layer = end; layer-- > first;) Backward(i, step, layer);
    }
  }

  void Forward(int64_t i, const Step& step, int64_t layer) {
    const std::vector<size_t> devices = HorizontalGroup(i, step.stage);
    const int64_t elements = rows_ * WidthOut(layer);
    Each("MatMul", devices, MatMul(rows_, WidthIn(layer), WidthOut(layer)));
    AfterProduct(i, step, elements);
    Each("Relu", devices, Elementwise(elements));
  }

  void Loss(int64_t i, const Step& step) {
    const std::vector<size_t> devices = HorizontalGroup(i, step.stage);
    Each("Loss", devices, Elementwise(rows_ * c_.dim));
    Accumulate(i, step, false, rows_ * c_.dim);
    Each("LossGrad", devices, Elementwise(rows_ * c_.dim));
  }

  void Backward(int64_t i, const Step& step, int64_t layer) {
    const std::vector<size_t> devices = HorizontalGroup(i, step.stage);
    const int64_t in = WidthIn(layer), out = WidthOut(layer);
    Each("ReluGrad", devices, Elementwise(rows_ * out, 2));
    Each("MatMulGrad", devices, MatMul(rows_, out, in) + MatMul(in, rows_, out));
    AfterProduct(i, step, rows_ * in);
    if (layer == 0) Accumulate(i, step, false, rows_ * in);
    Accumulate(i, step, true, in * out);
  }

  // After all compute of the timestep.
  void Send(int64_t i, const Step& step) {
    const int64_t to = step.forward ? step.stage + 1 : step.stage - 1;
    if (to < 0 || to >= c_.pp) return;
    const int64_t edge = step.forward ? WidthOut((step.stage + 1) * layers_a_stage_ - 1)
                                      : WidthIn(step.stage * layers_a_stage_);
    const int64_t bytes = 4 * rows_ * edge;
    for (int64_t j = 0; j < c_.hp; ++j) {
      Together("Send", {Device(i, j, step.stage), Device(i, j, to)},
               Transfer(static_cast<double>(bytes)));
      figures_.send_bytes += bytes;
    }
  }

  void ReduceGradients() {
    for (int64_t layer = c_.layers; c_.dp > 1 && layer-- > 0;) {
      for (int64_t j = 0; j < c_.hp; ++j) {
        std::vector<size_t> devices;
        for (int64_t i = 0; i < c_.dp; ++i) {
          devices.push_back(Device(i, j, layer / layers_a_stage_));
        }
        AllReduce(devices, WidthIn(layer) * WidthOut(layer));
      }
    }
  }

  // SGD charges one weight a device, however many it holds.
  void UpdateWeights() {
    if (!c_.optimizer) return;
    for (size_t device = 0; device < clock_.size(); ++device) {
      Each("SGDOptimizer", {device}, Elementwise(c_.dim * c_.dim / c_.hp, 2));
    }
  }

  const Case& c_;
  const int64_t rows_, layers_a_stage_;
  std::vector<double> clock_;
  std::vector<int64_t> products_;  // by microbatch
  double busy_ = 0, communication_ = 0;
  Figures figures_;
};

}  // namespace
}  // namespace oracle_cc

std::string Case::ToString() const {
  return absl::StrCat("layers=", layers, " dim=", dim, " batch=", batch, " dp=", dp, " hp=", hp,
                      " pp=", pp, " microbatches=", microbatches,
                      optimizer ? " sgd" : " no optimizer", " at ", gigabits_per_second, " Gbps");
}

Figures Simulate(const Case& c) { return oracle_cc::Simulation(c).Run(); }

}  // namespace orrery::distir
