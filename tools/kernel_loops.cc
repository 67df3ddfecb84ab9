#include "tools/kernel_loops.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cluster/multiprocessor.h"
#include "cost_models/kernels/loop_nests.h"
#include "cost_models/kernels/tile_choice.h"
#include "ir/type.h"
#include "support/status.h"
#include "support/text_table.h"

namespace orrery::tools {
namespace kernel_loops_cc {
namespace {

using cost_models::LoopNest;
using cost_models::LoopTiles;
using cost_models::NearMemory;
using cost_models::TiledNest;
using cost_models::TileQuestion;
using cost_models::TileWishes;
using Json = nlohmann::ordered_json;

// Tiles of shared memory that are listed, the fastest first.
constexpr size_t kListed = 5;
constexpr int64_t kLargestTile = 4096;

// "128x64" or "128x64x8".
absl::StatusOr<std::vector<int64_t>> SizesOf(absl::string_view flag, const std::string& text) {
  std::vector<int64_t> sizes;
  for (const absl::string_view part : absl::StrSplit(text, 'x')) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(part, &size) || size < 1 || size > kLargestTile) size = 0;
    sizes.push_back(size);
  }
  const bool right = (sizes.size() == 2 || sizes.size() == 3) && std::ranges::count(sizes, 0) == 0;
  if (right) return sizes;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " '", text, "': wanted rows x columns, or these and how much of k, as ",
                   "128x128x8, each from 1 to ", kLargestTile));
}

struct Range {
  int64_t least, most;
};

absl::Status CheckRange(absl::string_view flag, std::optional<int64_t> value, Range range) {
  const bool right = !value.has_value() || (*value >= range.least && *value <= range.most);
  if (right) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", *value, ": wanted ", range.least, " to ", range.most));
}

absl::StatusOr<TileWishes> WishesOf(const KernelLoopFlags& flags) {
  TileWishes wishes;
  if (!flags.tile.empty()) {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, SizesOf("--tile", flags.tile));
    wishes.block = {sizes[0], sizes[1]};
    if (sizes.size() == 3) wishes.depth = sizes[2];
  }
  if (!flags.register_tile.empty()) {
    ORRERY_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                            SizesOf("--register-tile", flags.register_tile));
    wishes.thread = {sizes[0], sizes[1]};
    if (sizes.size() == 3) wishes.thread_k = sizes[2];
  }
  ORRERY_RETURN_IF_ERROR(CheckRange("--pad", flags.pad, {0, 64}));
  ORRERY_RETURN_IF_ERROR(CheckRange("--vector", flags.vector, {1, 8}));
  wishes.pad = flags.pad;
  wishes.vector = flags.vector;
  return wishes;
}

// Whether the user chose something that this nest obeys, so that no other tile will do.
bool IsChosen(const LoopNest& nest, const TileWishes& wishes) {
  const bool block = nest.tiles_blocks && wishes.block.has_value();
  return nest.near != NearMemory::kCache && (block || (nest.tiles_threads && wishes.thread));
}

std::string FlagsOf(const KernelLoopFlags& flags) {
  std::string text;
  const auto add = [&](absl::string_view name, absl::string_view value) {
    if (!value.empty()) absl::StrAppend(&text, text.empty() ? "" : " ", name, " ", value);
  };
  add("--tile", flags.tile);
  add("--register-tile", flags.register_tile);
  if (flags.pad.has_value()) add("--pad", absl::StrCat(*flags.pad));
  if (flags.vector.has_value()) add("--vector", absl::StrCat(*flags.vector));
  return text;
}

// The best of each nest, and the best of those with shared memory; and beside them the model
// `kernels`.
struct Found {
  std::vector<TiledNest> nests;
  std::vector<TiledNest> shared;
  cost_models::ProductTime model;
};

absl::StatusOr<Found> FindTiles(const KernelLoopFlags& flags, const TileQuestion& question) {
  ORRERY_ASSIGN_OR_RETURN(const TileWishes wishes, WishesOf(flags));
  Found found;
  found.model = cost_models::PriceProduct(question.shape, question.types, question.device);
  for (const LoopNest& nest : cost_models::AllLoopNests()) {
    const bool shared = nest.near == NearMemory::kShared;
    std::vector<TiledNest> ranked = RankTiles(nest, question, wishes, shared ? kListed : 1);
    if (ranked.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(FlagsOf(flags), ": ", WhyNoTiles(nest, question, wishes)));
    }
    // Rows of whole matrices in registers fit nowhere, which the table says.
    const bool must_fit = IsChosen(nest, wishes) && nest.name != "register-rows";
    if (must_fit && !ranked[0].unfit.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(FlagsOf(flags), ": on ", question.device.name,
                                                     " the loops '", nest.name, "' ",
                                                     ranked[0].unfit, "; try a smaller tile"));
    }
    found.nests.push_back(ranked[0]);
    if (shared) found.shared = std::move(ranked);
  }
  return found;
}

// "2,147,483,648"
std::string WithCommas(int64_t count) {
  std::string text = absl::StrCat(count);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

std::string TileText(const TiledNest& nest) {
  if (!nest.nest->tiles_blocks) return "";
  const LoopTiles& t = nest.tiles;
  const std::string sides = absl::StrCat(t.block_m, "x", t.block_n);
  return nest.nest->near == NearMemory::kShared ? absl::StrCat(sides, "x", t.depth) : sides;
}

std::string ThreadText(const TiledNest& nest) {
  const LoopTiles& t = nest.tiles;
  if (!nest.nest->tiles_threads) return "1x1";
  const std::string sides = absl::StrCat(t.thread_m, "x", t.thread_n);
  return t.thread_k > 1 ? absl::StrCat(sides, "x", t.thread_k) : sides;
}

std::string TimeText(const TiledNest& nest) {
  if (!nest.unfit.empty()) return "no room";
  return nest.timed() ? ToString(Duration::FromSeconds(nest.seconds())) : "-";
}

std::string NestTable(const std::vector<TiledNest>& nests) {
  std::vector<TextRow> rows = {{"  loops", "tile", "a thread", "loads", "stores", "near loads",
                                "near stores", "registers", "near memory", "time"}};
  for (const TiledNest& nest : nests) {
    const cost_models::LoopCounts& counts = nest.counts;
    const bool near = nest.nest->near != NearMemory::kNone;
    rows.push_back({absl::StrCat("  ", nest.nest->name), TileText(nest), ThreadText(nest),
                    WithCommas(counts.memory.loads()), WithCommas(counts.memory.stores),
                    near ? WithCommas(counts.near.loads()) : "-",
                    near ? WithCommas(counts.near.stores) : "-", absl::StrCat(nest.registers),
                    near ? ToString(nest.near_bytes) : "-", TimeText(nest)});
  }
  return TextTable(rows, 3);
}

std::string SharedTable(const std::vector<TiledNest>& nests) {
  std::vector<TextRow> rows = {{"  tile", "a thread", "loads", "pad", "at once", "conflicts",
                                "threads", "blocks", "a core", "occupancy", "waves", "limited by",
                                "time"}};
  for (const TiledNest& nest : nests) {
    rows.push_back(
        {absl::StrCat("  ", TileText(nest)), ThreadText(nest),
         WithCommas(nest.counts.memory.loads()), absl::StrCat(nest.layout.pad),
         absl::StrCat(nest.layout.vector), absl::StrFormat("%.2f", nest.banks.Sum().conflicts()),
         absl::StrCat(nest.counts.threads), WithCommas(nest.counts.blocks),
         absl::StrCat(nest.blocks_a_core), absl::StrFormat("%.0f %%", 100 * nest.occupancy),
         absl::StrFormat("%.2f", nest.waves), std::string(nest.limit()), TimeText(nest)});
  }
  return TextTable(rows, 2);
}

// What has no room says what it wants.
std::string UnfitText(const std::vector<TiledNest>& nests) {
  std::string text;
  for (const TiledNest& nest : nests) {
    if (!nest.unfit.empty()) absl::StrAppend(&text, "  ", nest.nest->name, " ", nest.unfit, "\n");
  }
  return text;
}

// Loads by the tile of the model, whose blocks read each row of operands once for each tile.
int64_t ModelLoads(const KernelLoopQuestion& question, const cost_models::ProductTime& model) {
  const LoopTiles tiles = {.block_m = model.tile_m, .block_n = model.tile_n};
  return cost_models::FindLoopNest("shared")->count(question.shape, tiles).memory.loads();
}

std::string ModelText(const KernelLoopQuestion& question, const cost_models::ProductTime& model) {
  return absl::StrFormat(
      "  the model `kernels` has tiles of %d x %d, which load %s elements, in %.2f waves: %s in a "
      "burst\n",
      model.tile_m, model.tile_n, WithCommas(ModelLoads(question, model)), model.waves,
      ToString(model.time));
}

std::string BestText(const TiledNest& best, const cluster::Device& device) {
  const std::string flags =
      best.nest->near == NearMemory::kShared
          ? absl::StrCat(": --tile ", TileText(best), " --register-tile ", ThreadText(best),
                         " --pad ", best.layout.pad, " --vector ", best.layout.vector)
          : "";
  return absl::StrFormat("  the best on %s is '%s'%s, limited by %s\n", device.name,
                         best.nest->name, flags, best.limit());
}

// The shortest of those that have a time and room; null: none has.
const TiledNest* BestOf(const std::vector<TiledNest>& nests) {
  const TiledNest* best = nullptr;
  for (const TiledNest& nest : nests) {
    if (!nest.timed() || !nest.unfit.empty()) continue;
    if (best == nullptr || nest.seconds() < best->seconds()) best = &nest;
  }
  return best;
}

Json TrafficJson(const cost_models::LoopTraffic& traffic) {
  return {{"loads_a", traffic.a},
          {"loads_b", traffic.b},
          {"loads", traffic.loads()},
          {"stores", traffic.stores}};
}

Json BankJson(const cost_models::BankUse& use) {
  return {{"instructions", use.instructions},
          {"cycles", use.cycles},
          {"cycles_without_conflicts", use.least}};
}

Json SharedJson(const TiledNest& nest) {
  return {{"pad", nest.layout.pad},
          {"vector", nest.layout.vector},
          {"conflicts", nest.banks.Sum().conflicts()},
          {"a_loads", BankJson(nest.banks.a_loads)},
          {"b_loads", BankJson(nest.banks.b_loads)},
          {"a_stores", BankJson(nest.banks.a_stores)},
          {"b_stores", BankJson(nest.banks.b_stores)}};
}

Json NestJson(const TiledNest& nest) {
  const LoopTiles& t = nest.tiles;
  Json json = {{"name", std::string(nest.nest->name)},
               {"summary", std::string(nest.nest->summary)},
               {"formula", std::string(nest.nest->formula)},
               {"tile", {t.block_m, t.block_n, t.depth}},
               {"register_tile", {t.thread_m, t.thread_n, t.thread_k}},
               {"memory", TrafficJson(nest.counts.memory)},
               {"near", TrafficJson(nest.counts.near)},
               {"registers", nest.registers},
               {"near_bytes", nest.near_bytes.count()},
               {"fits", nest.unfit.empty()},
               {"unfit", nest.unfit}};
  if (nest.nest->near == NearMemory::kShared) json["banks"] = SharedJson(nest);
  if (!nest.timed()) return json;
  json.update({{"threads", nest.counts.threads},
               {"blocks", nest.counts.blocks},
               {"blocks_a_core", nest.blocks_a_core},
               {"occupancy", nest.occupancy},
               {"waves", nest.waves},
               {"arithmetic_s", nest.arithmetic_s},
               {"memory_s", nest.memory_s},
               {"shared_memory_s", nest.near_s},
               {"time_s", nest.seconds()},
               {"limited_by", std::string(nest.limit())}});
  return json;
}

Json AnswerJson(const Found& found, const KernelLoopQuestion& question,
                const cluster::Multiprocessor& core) {
  Json json = {{"architecture", std::string(core.architecture)},
               {"cores", core.cores},
               {"lanes_a_core", core.lanes},
               {"registers_a_core", core.registers},
               {"shared_memory_a_block_bytes", core.shared_memory_a_block.count()},
               {"nests", Json::array()},
               {"shared_tiles", Json::array()},
               {"model_tile", {found.model.tile_m, found.model.tile_n}},
               {"model_loads", ModelLoads(question, found.model)}};
  for (const TiledNest& nest : found.nests) json["nests"].push_back(NestJson(nest));
  for (const TiledNest& nest : found.shared) json["shared_tiles"].push_back(NestJson(nest));
  const TiledNest* const best = BestOf(found.nests);
  json["best"] = best == nullptr ? Json() : Json(std::string(best->nest->name));
  return json;
}

std::string AnswerText(const Found& found, const KernelLoopQuestion& question,
                       const cluster::Multiprocessor& core) {
  std::string text = absl::StrFormat(
      "loops by vector units, without caches but their own, in elements; %d cores of %s\n",
      core.cores, core.architecture);
  absl::StrAppend(&text, NestTable(found.nests), UnfitText(found.nests));
  absl::StrAppend(&text, "tiles of shared memory, the fastest first\n", SharedTable(found.shared));
  if (const TiledNest* const best = BestOf(found.nests); best != nullptr) {
    absl::StrAppend(&text, BestText(*best, question.device));
  }
  return absl::StrCat(text, ModelText(question, found.model));
}

}  // namespace
}  // namespace kernel_loops_cc

void AddKernelLoopFlags(boost::program_options::options_description& options,
                        KernelLoopFlags& flags) {
  namespace po = boost::program_options;
  options.add_options()("loads", po::bool_switch(&flags.loads),
                        "of matmul, also what loops load and store that are written by hand: "
                        "naive, with tiles in registers, in a cache, in shared memory")(
      "tile", po::value(&flags.tile),
      "of these loops, rows x columns of the result that a block makes, and how much of k it holds "
      "at a time: 128x128x8; without, the best. It implies --loads, as those below do")(
      "register-tile", po::value(&flags.register_tile),
      "rows x columns that a thread makes, and k at a time: 8x8")(
      "pad", po::value<int64_t>()->notifier([&flags](int64_t pad) { flags.pad = pad; }),
      "elements between rows of a tile in shared memory")(
      "vector", po::value<int64_t>()->notifier([&flags](int64_t vector) { flags.vector = vector; }),
      "elements that a thread loads from there at once");
}

absl::StatusOr<KernelLoopAnswer> AnswerKernelLoops(const KernelLoopFlags& flags,
                                                   const KernelLoopQuestion& question) {
  namespace own = kernel_loops_cc;
  const auto core = cluster::FindMultiprocessor(question.device);
  if (!core.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--loads: no figures of the cores of ", question.device.name,
                     "; wanted one of NVIDIA's devices, as a100-80gb, or a file that says whose "
                     "cores it has, as by like: or cores { like: \"a100-80gb\" }"));
  }
  const bool wide = question.dtype == ir::DType::kF32 || question.dtype == ir::DType::kBF16 ||
                    question.dtype == ir::DType::kF16;
  if (!wide) {
    return absl::InvalidArgumentError(absl::StrCat("--loads: vector units have no products of ",
                                                   ToString(question.dtype),
                                                   "; wanted f32, bf16 or f16"));
  }
  const cost_models::TileQuestion tiles = {
      .shape = question.shape,
      .types = {.in = question.dtype,
                .out = question.dtype,
                .along_k = question.layout != cost_models::ProductLayout::kNT},
      .b_along_k = question.layout == cost_models::ProductLayout::kTN,
      .device = question.device,
      .core = *core};
  ORRERY_ASSIGN_OR_RETURN(const own::Found found, own::FindTiles(flags, tiles));
  return KernelLoopAnswer{.text = own::AnswerText(found, question, *core),
                          .json = own::AnswerJson(found, question, *core)};
}

}  // namespace orrery::tools
