#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/microsoft_test_util.h"

// Attention as ONNX Runtime fuses it, executed: against loops that say what its documentation of
// these ops does.

namespace orrery::importer {
namespace microsoft_attention_test_cc {
namespace {

std::string ErrorOf(const std::string& node, const std::string& inputs) {
  onnx::ModelProto model = ModelOf(absl::StrCat("g (", inputs, ") => (float[N] y) { ", node, " }"));
  model.mutable_graph()->mutable_output(0)->clear_type();
  model.mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
  const std::string text = ImportText(model);
  const size_t at = text.find("'y': ");
  return at == std::string::npos ? text : text.substr(at + 5);
}

// One attention by heads, of numbers at (batch, row, head, feature).
struct Heads {
  using At = std::function<double(int64_t b, int64_t row, int64_t h, int64_t i)>;
  At q, k, v;
  int64_t keys, width;
  std::function<double(int64_t b, int64_t h, int64_t s, int64_t t)> added = {};
  double scale = 0;  // 0: as wide as heads are
  bool causal = false;

  double Y(int64_t b, int64_t s, int64_t h, int64_t i) const {
    double sum = 0, y = 0;
    for (int64_t t = 0; t < keys; ++t) {
      if (causal && t > s) continue;
      double logit = 0;
      for (int64_t j = 0; j < width; ++j) logit += q(b, s, h, j) * k(b, t, h, j);
      logit *= scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(width));
      if (added) logit += added(b, h, s, t);
      sum += std::exp(logit);
      y += std::exp(logit) * v(b, t, h, i);
    }
    return y / sum;
  }
};

// com.microsoft.Attention of x [2,3,5] by 2 heads of 2 features, 3 of the values.
struct AttentionCase {
  std::string attributes = {}, inputs = {}, names = {};
  Given given = {};
  std::function<bool(int64_t b, int64_t s, int64_t t)> visible = {};
  double filter = -10000, scale = 0;
  bool causal = false, bias = true, added = false;
};

void Check(const AttentionCase& each) {
  SCOPED_TRACE(absl::StrCat(each.attributes, " ", each.names));
  const std::string projection = each.bias ? "x, w, p" : "x, w,";
  const Ran ran(
      absl::StrCat("y = Attention <num_heads = 2, qkv_hidden_sizes = [4, 4, 6]", each.attributes,
                   "> (", projection, each.names, ")"),
      absl::StrCat("float[2,3,5] x, float[5,14] w", each.bias ? ", float[14] p" : "", each.inputs),
      each.given);
  if (!ran.ok()) return;
  const auto projected = [&](int64_t b, int64_t row, int64_t column) {
    double sum = each.bias ? ran.At("p", {column}) : 0;
    for (int64_t j = 0; j < 5; ++j) sum += ran.At("x", {b, row, j}) * ran.At("w", {j, column});
    return sum;
  };
  Heads heads = {
      .q = [&](int64_t b, int64_t r, int64_t h, int64_t i) { return projected(b, r, 2 * h + i); },
      .k = [&](int64_t b, int64_t r, int64_t h,
               int64_t i) { return projected(b, r, 4 + 2 * h + i); },
      .v = [&](int64_t b, int64_t r, int64_t h,
               int64_t i) { return projected(b, r, 8 + 3 * h + i); },
      .keys = 3,
      .width = 2,
      .scale = each.scale,
      .causal = each.causal};
  heads.added = [&](int64_t b, int64_t h, int64_t s, int64_t t) {
    const double hidden = each.visible && !each.visible(b, s, t) ? each.filter : 0;
    return hidden + (each.added ? ran.At("a", {0, h, s, t}) : 0);
  };
  ran.Expect("y", {2, 3, 6}, [&](const std::vector<int64_t>& at) {
    return heads.Y(at[0], at[1], at[2] / 3, at[2] % 3);
  });
}

TEST(MicrosoftAttention, Attention) {
  Check({});
  Check({.attributes = "", .inputs = "", .names = "", .bias = false});
  Check({.attributes = ", unidirectional = 1", .causal = true});
  Check({.attributes = ", scale = 0.25", .scale = 0.25});
  Check({.inputs = ", float[1,2,3,3] a", .names = ",,, a", .added = true});
}

// In each of the forms that it may have.
TEST(MicrosoftAttention, MasksOfAttention) {
  const std::vector<int64_t> raw = {1, 1, 0, 1, 0, 1};
  const auto visible = [&](int64_t b, int64_t, int64_t t) {
    return raw[static_cast<size_t>(3 * b + t)] != 0;
  };
  Check({.inputs = ", int32[2,3] m", .names = ", m", .given = {{"m", raw}}, .visible = visible});
  Check({.attributes = ", mask_filter_value = -0.5",  // which leaves some of what is hidden
         .inputs = ", int32[2,3] m",
         .names = ", m",
         .given = {{"m", raw}},
         .visible = visible,
         .filter = -0.5});
  Check({.attributes = ", unidirectional = 1",
         .inputs = ", int32[2,3] m, float[1,2,3,3] a",
         .names = ", m,, a",
         .given = {{"m", raw}},
         .visible = visible,
         .causal = true,
         .added = true});
  Check({.inputs = ", int32[2] m",
         .names = ", m",
         .given = {{"m", {2, 3}}},
         .visible = [](int64_t b, int64_t, int64_t t) { return t < b + 2; }});
  Check({.inputs = ", int32[4] m",
         .names = ", m",
         .given = {{"m", {2, 3, 0, 1}}},
         .visible = [](int64_t b, int64_t, int64_t t) { return t >= b && t < b + 2; }});
  std::vector<int64_t> each(18);
  for (size_t i = 0; i < each.size(); ++i) each[i] = i % 4 != 0 ? 1 : 0;
  Check({.inputs = ", int32[2,3,3] m",
         .names = ", m",
         .given = {{"m", each}},
         .visible = [](int64_t b, int64_t s, int64_t t) { return (9 * b + 3 * s + t) % 4 != 0; }});
  std::vector<int64_t> square(32);
  for (size_t i = 0; i < square.size(); ++i) square[i] = i % 3 != 0 ? 1 : 0;
  Check({.inputs = ", int32[2,1,4,4] m",
         .names = ", m",
         .given = {{"m", square}},
         .visible = [](int64_t b, int64_t s, int64_t t) { return (16 * b + 4 * s + t) % 3 != 0; }});
}

TEST(MicrosoftAttention, PresentOfAttention) {
  const Ran ran("y, z = Attention <num_heads = 2> (x, w)", "float[2,3,4] x, float[4,12] w", {},
                {"y", "z"});
  ran.Expect("z", {2, 2, 2, 3, 2}, [&](const std::vector<int64_t>& at) {
    double sum = 0;
    for (int64_t j = 0; j < 4; ++j) {
      sum += ran.At("x", {at[1], at[3], j}) * ran.At("w", {j, 4 + 4 * at[0] + 2 * at[2] + at[4]});
    }
    return sum;
  });
}

// Queries of 3 rows and keys of 4, by 2 heads.
TEST(MicrosoftAttention, MultiHeadAttention) {
  const std::string inputs =
      "float[2,3,4] q, float[2,4,4] k, float[2,4,6] v, float[14] p, int32[2,4] m, "
      "float[2,1,3,4] a";
  const std::vector<int64_t> mask = {1, 1, 1, 0, 0, 1, 1, 1};
  const Ran ran("y, z, u = MultiHeadAttention <num_heads = 2> (q, k, v, p, m, a)", inputs,
                {{"m", mask}}, {"y", "z", "u"});
  if (!ran.ok()) return;
  const auto part = [&](const std::string& name, int64_t width, int64_t from) {
    return [&ran, name, width, from](int64_t b, int64_t r, int64_t h, int64_t i) {
      return ran.At(name, {b, r, width * h + i}) + ran.At("p", {from + width * h + i});
    };
  };
  const Heads heads = {
      .q = part("q", 2, 0),
      .k = part("k", 2, 4),
      .v = part("v", 3, 8),
      .keys = 4,
      .width = 2,
      .added = [&](int64_t b, int64_t, int64_t s, int64_t t) {
        return ran.At("a", {b, 0, s, t}) + (mask[static_cast<size_t>(4 * b + t)] != 0 ? 0 : -10000);
      }};
  ran.Expect("y", {2, 3, 6}, [&](const std::vector<int64_t>& at) {
    return heads.Y(at[0], at[1], at[2] / 3, at[2] % 3);
  });
  ran.Expect("z", {2, 2, 4, 2},
             [&](const std::vector<int64_t>& at) { return heads.k(at[0], at[2], at[1], at[3]); });
  ran.Expect("u", {2, 2, 4, 3},
             [&](const std::vector<int64_t>& at) { return heads.v(at[0], at[2], at[1], at[3]); });
}

// q, k and v in one tensor; k and v in one; k and v by heads.
TEST(MicrosoftAttention, MultiHeadAttentionOfPackedParts) {
  const auto packed = [](const Ran& ran, const std::string& name, int64_t part) {
    return [&ran, name, part](int64_t b, int64_t r, int64_t h, int64_t i) {
      return ran.At(name, {b, r, h, part, i});
    };
  };
  const auto check = [](const Ran& ran, const Heads& heads) {
    ran.Expect("y", {2, 3, 4}, [&](const std::vector<int64_t>& at) {
      return heads.Y(at[0], at[1], at[2] / 2, at[2] % 2);
    });
  };
  const Ran all("y = MultiHeadAttention <num_heads = 2, unidirectional = 1> (q)",
                "float[2,3,2,3,2] q");
  check(all, {.q = packed(all, "q", 0),
              .k = packed(all, "q", 1),
              .v = packed(all, "q", 2),
              .keys = 3,
              .width = 2,
              .causal = true});
  const auto rows = [](const Ran& ran) {
    return [&ran](int64_t b, int64_t r, int64_t h, int64_t i) {
      return ran.At("q", {b, r, 2 * h + i});
    };
  };
  const Ran two("y = MultiHeadAttention <num_heads = 2, scale = 2.0> (q, k)",
                "float[2,3,4] q, float[2,4,2,2,2] k");
  check(two, {.q = rows(two),
              .k = packed(two, "k", 0),
              .v = packed(two, "k", 1),
              .keys = 4,
              .width = 2,
              .scale = 2});
  const Ran by_heads("y = MultiHeadAttention <num_heads = 2> (q, k, v)",
                     "float[2,3,4] q, float[2,2,4,2] k, float[2,2,4,2] v");
  const auto head = [&](const std::string& name) {
    return [&by_heads, name](int64_t b, int64_t r, int64_t h, int64_t i) {
      return by_heads.At(name, {b, h, r, i});
    };
  };
  check(by_heads, {.q = rows(by_heads), .k = head("k"), .v = head("v"), .keys = 4, .width = 2});
}

// Feature i of a row at `position`, with the first 2 `half` features turned.
double Turned(const Ran& ran, const std::function<double(int64_t i)>& x, int64_t position,
              int64_t i, int64_t half, bool interleaved) {
  if (i >= 2 * half) return x(i);
  const int64_t angle = interleaved ? i / 2 : i % half;
  const bool first = interleaved ? i % 2 == 0 : i < half;
  const int64_t partner = interleaved ? i ^ 1 : first ? i + half : i - half;
  const double cos = ran.At("c", {position, angle}), sin = ran.At("s", {position, angle});
  return x(i) * cos + (first ? -1 : 1) * x(partner) * sin;
}

TEST(MicrosoftAttention, RotaryEmbedding) {
  const std::string tables = ", float[9,2] c, float[9,2] s";
  for (const bool interleaved : {false, true}) {
    const std::string turn = absl::StrCat("interleaved = ", interleaved ? 1 : 0);
    const Ran by_heads(absl::StrCat("y = RotaryEmbedding <", turn, "> (x, p, c, s)"),
                       "float[2,3,5,4] x, int64[2,5] p" + tables,
                       {{"p", {0, 1, 2, 3, 4, 8, 7, 6, 5, 4}}});
    by_heads.Expect("y", {2, 3, 5, 4}, [&](const std::vector<int64_t>& at) {
      const auto x = [&](int64_t i) { return by_heads.At("x", {at[0], at[1], at[2], i}); };
      const auto row = static_cast<int64_t>(by_heads.At("p", {at[0], at[2]}));
      return Turned(by_heads, x, row, at[3], 2, interleaved);
    });
    const Ran packed(absl::StrCat("y = RotaryEmbedding <", turn, "> (x, p, c, s)"),
                     "float[2,5,12] x, int64[1] p" + tables, {{"p", {3}}});
    packed.Expect("y", {2, 5, 12}, [&](const std::vector<int64_t>& at) {
      const int64_t head = at[2] / 4 * 4;
      const auto x = [&](int64_t i) { return packed.At("x", {at[0], at[1], head + i}); };
      return Turned(packed, x, 3 + at[1], at[2] % 4, 2, interleaved);
    });
    const Ran part(absl::StrCat("y = RotaryEmbedding <", turn,
                                ", num_heads = 2, rotary_embedding_dim = 4> (x, p, c, s)"),
                   "float[2,5,12] x, int64[2,5] p" + tables,
                   {{"p", {0, 1, 2, 3, 4, 8, 7, 6, 5, 4}}});
    part.Expect("y", {2, 5, 12}, [&](const std::vector<int64_t>& at) {
      const int64_t head = at[2] / 6 * 6;
      const auto x = [&](int64_t i) { return part.At("x", {at[0], at[1], head + i}); };
      const auto row = static_cast<int64_t>(part.At("p", {at[0], at[1]}));
      return Turned(part, x, row, at[2] % 6, 2, interleaved);
    });
  }
}

// 4 heads of queries on 2 of keys and values; in three tensors or in one; turned or not.
TEST(MicrosoftAttention, GroupQueryAttention) {
  const std::string counts = "num_heads = 4, kv_num_heads = 2";
  const std::string lengths = "int32[2] l, int32 n";
  const Ran plain(absl::StrCat("y = GroupQueryAttention <", counts, "> (q, k, v,,, l, n)"),
                  "float[2,3,8] q, float[2,3,4] k, float[2,3,4] v, " + lengths,
                  {{"l", {2, 2}}, {"n", {3}}});
  const auto rows = [&](const std::string& name, int64_t group) {
    return [&plain, name, group](int64_t b, int64_t r, int64_t h, int64_t i) {
      return plain.At(name, {b, r, h / group * 2 + i});
    };
  };
  const Heads heads = {.q = rows("q", 1),
                       .k = rows("k", 2),
                       .v = rows("v", 2),
                       .keys = 3,
                       .width = 2,
                       .causal = true};
  plain.Expect("y", {2, 3, 8}, [&](const std::vector<int64_t>& at) {
    return heads.Y(at[0], at[1], at[2] / 2, at[2] % 2);
  });

  for (const bool interleaved : {false, true}) {
    const Ran ran(absl::StrCat("y, z, u = GroupQueryAttention <", counts, ", do_rotary = 1, ",
                               "rotary_interleaved = ", interleaved ? 1 : 0,
                               ", scale = 0.75> (q,,,,, l, n, c, s,, a)"),
                  "float[2,3,32] q, float[9,2] c, float[9,2] s, float[1,4,3,3] a, " + lengths,
                  {{"l", {2, 2}}, {"n", {3}}}, {"y", "z", "u"});
    const auto from = [&](int64_t first, int64_t group, bool turned) {
      return [&ran, first, group, turned, interleaved](int64_t b, int64_t r, int64_t h, int64_t i) {
        const auto x = [&](int64_t j) { return ran.At("q", {b, r, first + h / group * 4 + j}); };
        return turned ? Turned(ran, x, r, i, 2, interleaved) : x(i);
      };
    };
    const Heads packed = {.q = from(0, 1, true),
                          .k = from(16, 2, true),
                          .v = from(24, 2, false),
                          .keys = 3,
                          .width = 4,
                          .added =
                              [&](int64_t, int64_t h, int64_t s, int64_t t) {
                                return ran.At("a", {0, h, s, t});
                              },
                          .scale = 0.75,
                          .causal = true};
    ran.Expect("y", {2, 3, 16}, [&](const std::vector<int64_t>& at) {
      return packed.Y(at[0], at[1], at[2] / 4, at[2] % 4);
    });
    ran.Expect("z", {2, 2, 3, 4}, [&](const std::vector<int64_t>& at) {
      return packed.k(at[0], at[2], 2 * at[1], at[3]);
    });
  }
}

TEST(MicrosoftAttention, WhatBelongsToInferenceIsRefused) {
  EXPECT_EQ(ErrorOf("y = Attention <num_heads = 2> (x, w,,, p)",
                    "float[2,3,4] x, float[4,12] w, float[2,2,2,7,2] p"),
            "input 4 (earlier keys and values) is not supported; a step of training has none");
  EXPECT_EQ(ErrorOf("y = Attention <num_heads = 3> (x, w)", "float[2,3,4] x, float[4,12] w"),
            "an operand has shape [2,3,4]; wanted [batch,rows,features] of 3 heads");
  EXPECT_EQ(ErrorOf("y = Attention (x, w)", "float[2,3,4] x, float[4,12] w"),
            "num_heads is 0; wanted 1 to 4294967296");
  EXPECT_EQ(ErrorOf("y = Attention <num_heads = 2, do_rotary = 1> (x, w)",
                    "float[2,3,4] x, float[4,12] w"),
            "do_rotary=1; wanted 0");
  EXPECT_EQ(ErrorOf("y = Attention <num_heads = 2> (x, w,, m)",
                    "float[2,3,4] x, float[4,12] w, int32[8] m"),
            "the mask has shape [8]; wanted [batch], [2 batch], [batch,keys], "
            "[batch,queries,keys] or [batch,1,rows,rows]");
  EXPECT_EQ(ErrorOf("y = MultiHeadAttention <num_heads = 2> (q, k, v,,,, p, p)",
                    "float[2,3,4] q, float[2,3,4] k, float[2,3,4] v, float[2,2,7,2] p"),
            "input 6 (earlier keys and values) is not supported; a step of training has none");
  EXPECT_EQ(ErrorOf("y = MultiHeadAttention <num_heads = 2, unidirectional = 1> (q, k, v)",
                    "float[2,3,4] q, float[2,5,4] k, float[2,5,4] v"),
            "each row sees those before it, of 3 queries and 5 keys; wanted as many");
  const std::string grouped = "float[2,3,8] q, float[2,3,4] k, float[2,3,4] v";
  EXPECT_EQ(ErrorOf("y = GroupQueryAttention <num_heads = 4, kv_num_heads = 2, "
                    "local_window_size = 2> (q, k, v)",
                    grouped),
            "local_window_size is 2; wanted -1, or all 3 rows");
  EXPECT_EQ(ErrorOf("y = GroupQueryAttention <num_heads = 4, kv_num_heads = 3> (q, k, v)", grouped),
            "num_heads is 4; wanted a multiple of kv_num_heads, 3");
  EXPECT_EQ(ErrorOf("y = RotaryEmbedding <is_packed_batching = 1> (x, p, c, s)",
                    "float[2,3,4] x, int64[1] p, float[9,2] c, float[9,2] s"),
            "is_packed_batching=1 is not supported; wanted 0");
}

}  // namespace
}  // namespace microsoft_attention_test_cc
}  // namespace orrery::importer
