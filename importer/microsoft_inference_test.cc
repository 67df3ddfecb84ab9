#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/microsoft_test_util.h"

// Embeddings, norms, gelus and products as ONNX Runtime fuses them, executed: against loops that
// say what its documentation of these ops does.

namespace orrery::importer {
namespace microsoft_inference_test_cc {
namespace {

// The norm of row `row` of numbers that `x` has.
struct Norm {
  std::function<double(int64_t i)> x;
  int64_t size;
  double epsilon;
  bool centered = true;

  double Mean() const {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += x(i);
    return centered ? sum / static_cast<double>(size) : 0;
  }
  double Inverse() const {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += (x(i) - Mean()) * (x(i) - Mean());
    return 1 / std::sqrt(sum / static_cast<double>(size) + epsilon);
  }
  double At(int64_t i) const { return (x(i) - Mean()) * Inverse(); }
};

TEST(MicrosoftInference, EmbedLayerNormalization) {
  const std::string tables =
      "int32[2,3] i, int32[2,3] g, float[7,4] w, float[5,4] p, float[2,4] t, float[4] a, "
      "float[4] b, int32[2,3] m, int32[1,3] q";
  const Given given = {{"i", {6, 0, 2, 3, 3, 5}},
                       {"g", {0, 0, 1, 1, 0, 1}},
                       {"m", {1, 1, 0, 1, 0, 0}},
                       {"q", {4, 0, 2}}};
  const auto check = [](const Ran& ran, bool segments, bool positions, double epsilon) {
    const auto sum = [&ran, segments, positions](int64_t b, int64_t r, int64_t i) {
      const auto id = static_cast<int64_t>(ran.At("i", {b, r}));
      const int64_t at = positions ? static_cast<int64_t>(ran.At("q", {0, r})) : r;
      const auto segment = segments ? static_cast<int64_t>(ran.At("g", {b, r})) : 0;
      return ran.At("w", {id, i}) + ran.At("p", {at, i}) +
             (segments ? ran.At("t", {segment, i}) : 0);
    };
    ran.Expect("y", {2, 3, 4}, [&](const std::vector<int64_t>& at) {
      const Norm norm = {
          .x = [&](int64_t i) { return sum(at[0], at[1], i); }, .size = 4, .epsilon = epsilon};
      return norm.At(at[2]) * ran.At("a", {at[2]}) + ran.At("b", {at[2]});
    });
    ran.Expect("z", {2, 3, 4},
               [&](const std::vector<int64_t>& at) { return sum(at[0], at[1], at[2]); });
  };
  const Ran all("y, n, z = EmbedLayerNormalization <epsilon = 0.5> (i, g, w, p, t, a, b, m, q)",
                tables, given, {"y", "n", "z"});
  check(all, true, true, 0.5);
  all.Expect("n", {2}, [](const std::vector<int64_t>& at) { return at[0] == 0 ? 2 : 1; });
  const Ran few("y, n, z = EmbedLayerNormalization (i,, w, p,, a, b)", tables, given,
                {"y", "n", "z"});
  check(few, false, false, 1e-12);
  few.Expect("n", {2}, [](const std::vector<int64_t>&) { return 0; });
}

TEST(MicrosoftInference, SkipNorms) {
  const std::string rows = "float[2,3,4] x, float[3,4] z, float[4] a, float[4] b, float[4] c";
  for (const bool centered : {true, false}) {
    for (const bool all : {true, false}) {
      const std::string name =
          centered ? "SkipLayerNormalization" : "SkipSimplifiedLayerNormalization";
      const std::string weights = centered ? (all ? ", b, c" : "") : (all ? ", c" : "");
      const Ran ran(absl::StrCat(centered ? "y, m, d, u = " : "y,, d, u = ", name,
                                 all ? " <epsilon = 0.25>" : "", " (x, z, a", weights, ")"),
                    rows, {},
                    centered ? std::vector<std::string>{"y", "m", "d", "u"}
                             : std::vector<std::string>{"y", "d", "u"});
      const auto norm = [&](int64_t b, int64_t r) {
        return Norm{.x =
                        [&ran, b, r, all](int64_t i) {
                          return ran.At("x", {b, r, i}) + ran.At("z", {r, i}) +
                                 (all ? ran.At("c", {i}) : 0);
                        },
                    .size = 4,
                    .epsilon = all ? 0.25 : 1e-12,
                    .centered = centered};
      };
      ran.Expect("y", {2, 3, 4}, [&](const std::vector<int64_t>& at) {
        return norm(at[0], at[1]).At(at[2]) * ran.At("a", {at[2]}) +
               (all && centered ? ran.At("b", {at[2]}) : 0);
      });
      ran.Expect("d", {2, 3, 1},
                 [&](const std::vector<int64_t>& at) { return norm(at[0], at[1]).Inverse(); });
      ran.Expect("u", {2, 3, 4},
                 [&](const std::vector<int64_t>& at) { return norm(at[0], at[1]).x(at[2]); });
    }
  }
}

TEST(MicrosoftInference, SimplifiedNorm) {
  const Ran ran("y, d = SimplifiedLayerNormalization (x, a)", "float[2,4] x, float[4] a", {},
                {"y", "d"});
  ran.Expect("y", {2, 4}, [&](const std::vector<int64_t>& at) {
    const Norm norm = {.x =
                           [&](int64_t i) {
                             return ran.At("x", {at[0], i});
                           },
                       .size = 4,
                       .epsilon = 1e-5,
                       .centered = false};
    return norm.At(at[1]) * ran.At("a", {at[1]});
  });
  EXPECT_EQ(ran.dims("d"), (ir::Dims{2, 1}));
}

TEST(MicrosoftInference, Gelus) {
  const auto erf = [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); };
  const auto tanh = [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };
  const auto quick = [](double alpha) {
    return [alpha](double x) { return x / (1 + std::exp(-alpha * x)); };
  };
  struct Case {
    const char* node;
    bool bias;
    std::function<double(double)> value;
  };
  for (const Case& each :
       {Case{"y = Gelu (x)", false, erf}, Case{"y = BiasGelu (x, b)", true, erf},
        Case{"y = FastGelu (x)", false, tanh}, Case{"y = FastGelu (x, b)", true, tanh},
        Case{"y = QuickGelu (x)", false, quick(1.702)},
        Case{"y = QuickGelu <alpha = 0.5> (x)", false, quick(0.5)}}) {
    SCOPED_TRACE(each.node);
    const Ran ran(each.node, "float[2,4] x, float[4] b");
    ran.Expect("y", {2, 4}, [&](const std::vector<int64_t>& at) {
      return each.value(ran.At("x", at) + (each.bias ? ran.At("b", {at[1]}) : 0));
    });
  }
}

TEST(MicrosoftInference, FusedMatMul) {
  const auto dot = [](const Ran& ran, const std::vector<int64_t>& at,
                      const std::vector<int64_t>& order_a, const std::vector<int64_t>& order_b,
                      double alpha) {
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t of_a[] = {at[0], at[1], k}, of_b[] = {at[0], k, at[2]};
      std::vector<int64_t> a, b;
      for (const int64_t d : order_a) a.push_back(of_a[d]);
      for (const int64_t d : order_b) b.push_back(of_b[d]);
      sum += alpha * ran.At("a", a) * ran.At("b", b);
    }
    return sum;
  };
  const Ran both("y = FusedMatMul <alpha = 0.5, transA = 1, transB = 1> (a, b)",
                 "float[2,4,3] a, float[2,5,4] b");
  both.Expect("y", {2, 3, 5}, [&](const std::vector<int64_t>& at) {
    return dot(both, at, {0, 2, 1}, {0, 2, 1}, 0.5);
  });
  const Ran batch("y = FusedMatMul <transBatchA = 1, transBatchB = 1> (a, b)",
                  "float[3,2,4] a, float[4,2,5] b");
  batch.Expect("y", {2, 3, 5}, [&](const std::vector<int64_t>& at) {
    return dot(batch, at, {1, 0, 2}, {1, 0, 2}, 1);
  });
  const Ran all("y = FusedMatMul <transBatchA = 1, transA = 1> (a, b)",
                "float[4,2,3] a, float[2,4,5] b");
  all.Expect("y", {2, 3, 5}, [&](const std::vector<int64_t>& at) {
    return dot(all, at, {2, 0, 1}, {0, 1, 2}, 1);
  });
}

TEST(MicrosoftInference, ProductsWithActivations) {
  const auto gemm = [](const Ran& ran, const std::vector<int64_t>& at) {
    double sum = ran.At("c", {at[1]});
    for (int64_t k = 0; k < 4; ++k) sum += ran.At("a", {at[0], k}) * ran.At("b", {at[1], k});
    return sum;
  };
  const std::string inputs = "float[3,4] a, float[2,4] b, float[2] c";
  const Ran tanh("y = FusedGemm <activation = \"Tanh\", transB = 1> (a, b, c)", inputs);
  tanh.Expect("y", {3, 2},
              [&](const std::vector<int64_t>& at) { return std::tanh(gemm(tanh, at)); });
  const Ran leaky(
      "y = FusedGemm <activation = \"LeakyRelu\", activation_alpha = 0.25, transB = 1> (a, b, c)",
      inputs);
  leaky.Expect("y", {3, 2}, [&](const std::vector<int64_t>& at) {
    const double x = gemm(leaky, at);
    return x > 0 ? x : 0.25 * x;
  });
  // Of kernels of one element.
  const Ran conv(
      "y = FusedConv <activation = \"HardSigmoid\", activation_params = [0.5, 0.25]> "
      "(x, w, b, z)",
      "float[1,2,3,3] x, float[4,2,1,1] w, float[4] b, float[1,4,3,3] z");
  conv.Expect("y", {1, 4, 3, 3}, [&](const std::vector<int64_t>& at) {
    double sum = conv.At("b", {at[1]}) + conv.At("z", at);
    for (int64_t k = 0; k < 2; ++k) {
      sum += conv.At("x", {0, k, at[2], at[3]}) * conv.At("w", {at[1], k, 0, 0});
    }
    return std::min(1.0, std::max(0.0, 0.5 * sum + 0.25));
  });
}

// Whatever shapes inputs have, and whichever of them are left out: a function, or one line.
TEST(MicrosoftInference, OfAnyShapesIsAnsweredOrRefused) {
  constexpr const char* kNodes[] = {
      "Attention <num_heads = 2>",
      "Attention <num_heads = 2, qkv_hidden_sizes = [-2, 4, 4], unidirectional = 1>",
      ("Attention <num_heads = 2, "
       "qkv_hidden_sizes = [9223372036854775807, 9223372036854775807, 26]>"),
      "MultiHeadAttention <num_heads = 2>",
      "GroupQueryAttention <num_heads = 4294967296, kv_num_heads = 4294967296>",
      "GroupQueryAttention <num_heads = 4, kv_num_heads = 2, do_rotary = 1>",
      "RotaryEmbedding <num_heads = 2, rotary_embedding_dim = 2>",
      "RotaryEmbedding <interleaved = 1>",
      "EmbedLayerNormalization",
      "SkipLayerNormalization",
      "FusedMatMul <transBatchA = 1, transBatchB = 1>",
      "FusedGemm <activation = \"Tanh\">",
      "FusedConv <activation = \"Relu\">"};
  std::mt19937 random(11);
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  int answered = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<std::string> declared, names;
    for (int i = 0; i < 1 + below(11); ++i) {
      std::vector<int> dims;
      for (int d = below(6); d > 0; --d) dims.push_back(below(8) == 0 ? 2 * below(3) : 4);
      const char* type = below(8) == 0 ? "int32" : "float";
      const std::string shape =
          dims.empty() ? "" : absl::StrCat("[", absl::StrJoin(dims, ","), "]");
      declared.push_back(absl::StrCat(type, shape, " i", i));
      names.push_back(below(8) == 0 ? "" : absl::StrCat("i", i));
    }
    onnx::ModelProto model =
        ModelOf(absl::StrCat("g (", absl::StrJoin(declared, ", "),
                             ") => (float[N] y) { y = ", kNodes[below(12)], " (i0) }"));
    model.mutable_graph()->mutable_output(0)->clear_type();
    onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
    node.set_domain("com.microsoft");
    node.clear_input();
    for (const std::string& name : names) node.add_input(name);
    const std::string text = ImportText(model);
    const bool is_function = text.find("func @") != std::string::npos;
    answered += is_function ? 1 : 0;
    EXPECT_TRUE(is_function || text.find('\n') == std::string::npos) << text;
  }
  EXPECT_GT(answered, 0);
}

}  // namespace
}  // namespace microsoft_inference_test_cc
}  // namespace orrery::importer
