#include <gtest/gtest.h>

#include <string>

#include "importer/builtin_models.h"
#include "ir/models/model.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/simplify/simplify.h"
#include "transforms/training/training_step.h"

// What the families of the library write, in the text form of the IR.

namespace orrery {
namespace build_test_cc {
namespace {

// One block of each style, small enough to read.
constexpr char kLlama[] =
    "gpt:layers=1,hidden=8,heads=4,kv_heads=2,seq=6,vocab=10,ffn=12,mlp=swiglu";
constexpr char kMixtral[] =
    "gpt:layers=1,hidden=8,heads=2,seq=6,vocab=10,ffn=12,mlp=swiglu,experts=4,topk=2";
constexpr char kDeepseek[] =
    "gpt:layers=2,hidden=8,heads=2,head_dim=4,seq=6,vocab=10,mlp=swiglu,ffn=12,attention=latent,"
    "q_rank=6,kv_rank=4,rope_dim=2,v_dim=3,experts=4,expert_ffn=4,shared_ffn=6,dense_layers=1";
constexpr char kHybrid[] =
    "hybrid:pattern=M*-E,hidden=8,heads=2,kv_heads=1,seq=6,vocab=10,ffn=12,mamba_heads=4,mamba_dim="
    "2,"
    "groups=2,state=3,chunk=4,experts=4,topk=2,expert_ffn=4,shared_ffn=6,latent=4";
constexpr char kMamba[] =
    "hybrid:pattern=M,hidden=8,heads=2,seq=6,vocab=10,mamba_dim=2,groups=2,state=2,experts=4,"
    "expert_ffn=4,predicted=2";
constexpr char kMambaOfExperts[] =
    "hybrid:pattern=ME,hidden=8,seq=6,vocab=10,mamba_dim=2,groups=2,state=2,mlp=swiglu,ffn=8,"
    "experts=4";
const std::string kSmall[] = {
    "gpt:layers=2,hidden=8,heads=2,seq=6,vocab=10",
    "gpt:layers=2,hidden=8,heads=2,seq=6,vocab=10,dropout=0.1,flash=1",
    kLlama,
    kMixtral,
    "gpt:layers=1,hidden=8,heads=2,seq=6,vocab=10,experts=4,topk=1,capacity_factor=1.5",
    kDeepseek,
    kHybrid,
    kMamba,
    kMambaOfExperts,
    "bert:layers=2,hidden=8,heads=2,seq=6,vocab=10,dropout=0.1",
    "bert:layers=1,hidden=8,heads=2,seq=6,vocab=10,head=words",
    "resnet:depth=18,width=2,image=32,classes=4",
    "resnet:depth=50,width=2,image=32,classes=4",
    "lstm:layers=2,hidden=6,input=4,seq=3,vocab=10,dropout=0.5",
    "mlp:layers=2,dim=4",
};

ir::Function Model(const std::string& model, int64_t batch = 4) {
  auto function = importer::BuildBuiltinModel(model, batch, ir::DType::kF32);
  EXPECT_TRUE(function.ok()) << function.status();
  return function.ok() ? *std::move(function) : ir::Function();
}

TEST(Families, Verify) {
  for (const std::string& model : kSmall) {
    const ir::Function function = Model(model);
    EXPECT_TRUE(ir::Verify(function).ok()) << model << ": " << ir::Verify(function);
    const auto again = ir::ParseFunction(ir::Print(function));
    ASSERT_TRUE(again.ok()) << model << ": " << again.status();
    EXPECT_EQ(ir::Print(*again), ir::Print(function));
  }
}

TEST(Families, BecomeTrainingSteps) {
  for (const std::string& model : kSmall) {
    ir::Function step = Model(model);
    const absl::Status status = transforms::MakeTrainingStep(step, {});
    ASSERT_TRUE(status.ok()) << model << ": " << status;
    EXPECT_TRUE(ir::Verify(step).ok()) << model << ": " << ir::Verify(step);
  }
}

// They are written with fused ops to begin with. Of an LSTM, simplify sinks the transposition
// behind the head, where it moves more.
TEST(Families, CannotBeSimplified) {
  for (const std::string& model : kSmall) {
    if (model.find("lstm") == 0) continue;
    ir::Function function = Model(model);
    const std::string before = ir::Print(function);
    const auto changed = transforms::Simplify(function);
    ASSERT_TRUE(changed.ok()) << model << ": " << changed.status();
    EXPECT_EQ(ir::Print(function), before) << model;
  }
}

TEST(Families, HaveDefaults) {
  for (const ir::ModelInfo* family : ir::AllModels()) {
    const auto function = importer::BuildBuiltinModel(family->name, 0, ir::DType::kBF16);
    EXPECT_TRUE(function.ok()) << function.status();
    EXPECT_FALSE(family->summary.empty());
    for (const ir::ModelKey& key : family->keys) EXPECT_FALSE(key.summary.empty()) << key.name;
  }
}

std::string Refused(const std::string& model) {
  return std::string(importer::BuildBuiltinModel(model, 1, ir::DType::kF32).status().message());
}

TEST(Families, RefuseKeysThatDoNotGoTogether) {
  EXPECT_EQ(Refused("gpt:hidden=10,heads=3"),
            "gpt:hidden=10,heads=3: hidden is 10; wanted a multiple of 3 heads, or try head_dim");
  EXPECT_EQ(Refused("gpt2-small:kv_heads=5"),
            "gpt2-small:kv_heads=5: heads is 12; wanted a multiple of 5 kv_heads");
  EXPECT_EQ(Refused("gpt:position=rotary,head_dim=3"),
            "gpt:position=rotary,head_dim=3: head_dim is 3; wanted an even number, or try "
            "position=learned");
  EXPECT_EQ(Refused("mixtral-8x7b:topk=9"),
            "mixtral-8x7b:topk=9: topk is 9; wanted at most 8 experts");
  EXPECT_EQ(Refused("gpt:mlp=relu"), "gpt:mlp=relu: mlp is 'relu'; wanted gelu or swiglu");
  EXPECT_EQ(Refused("gpt:dropout=1"),
            "gpt:dropout=1: dropout is '1'; wanted a number from 0 to 0.99");
  EXPECT_EQ(Refused("gpt:dropout=nan"),
            "gpt:dropout=nan: dropout is 'nan'; wanted a number from 0 to 0.99");
  EXPECT_EQ(Refused("bert-base:heads=7"),
            "bert-base:heads=7: hidden is 768; wanted a multiple of 7 heads");
  EXPECT_EQ(Refused("resnet:depth=51"),
            "resnet:depth=51: depth is '51'; wanted 18 or 34 or 50 or 101 or 152");
  EXPECT_EQ(Refused("hybrid:pattern=MX"),
            "hybrid:pattern=MX: pattern is 'MX'; wanted 1 to 10000 letters out of M*-E");
  EXPECT_EQ(Refused("hybrid:mamba_heads=3,groups=2"),
            "hybrid:mamba_heads=3,groups=2: mamba_heads is 3; wanted a multiple of 2 groups");
  EXPECT_EQ(Refused("hybrid:pattern=E,topk=9"),
            "hybrid:pattern=E,topk=9: topk is 9; wanted at most 8 experts");
  EXPECT_EQ(Refused("hybrid:heads=5"),
            "hybrid:heads=5: hidden is 768; wanted a multiple of 5 heads, or try head_dim");
  EXPECT_EQ(Refused("hybrid:kv_heads=5"),
            "hybrid:kv_heads=5: heads is 12; wanted a multiple of 5 kv_heads");
  EXPECT_EQ(Refused("gpt9"),
            "gpt9: is no built-in model; wanted one of " + importer::BuiltinModels());
}

// Sizes at the edge of their ranges are built or refused with one line; none crashes.
TEST(Families, StandAnySize) {
  for (const char* model :
       {"gpt:layers=1,hidden=1048576,heads=1,ffn=16777216,seq=16777216,vocab=16777216",
        "gpt:layers=1,hidden=1,heads=1,ffn=1,seq=1,vocab=1",
        "gpt:layers=1,hidden=1,heads=1,seq=1,vocab=1,experts=4096,topk=4096,capacity_factor=1000",
        "gpt:layers=1,hidden=16384,heads=16384,head_dim=1048576,seq=1,vocab=1",
        "gpt:layers=1,seq=16777216,experts=4096,topk=1,capacity_factor=0.01",
        "hybrid:pattern=M,hidden=1048576,seq=16777216,mamba_heads=16384,groups=16384,state=65536",
        "hybrid:pattern=M,hidden=1,seq=1,mamba_dim=65536,groups=1,conv=64,chunk=65536",
        "bert:layers=1,seq=16777216,hidden=1048576,heads=1", "lstm:layers=1,hidden=1048576",
        "resnet:image=16384,width=16384", "resnet:image=32,width=1"}) {
    for (const int64_t batch : {int64_t{1}, int64_t{1} << 32}) {
      const auto function = importer::BuildBuiltinModel(model, batch, ir::DType::kF64);
      if (function.ok()) {
        EXPECT_TRUE(ir::Verify(*function).ok()) << model;
      } else {
        EXPECT_EQ(function.status().message().find('\n'), std::string::npos) << function.status();
      }
    }
  }
}

}  // namespace
}  // namespace build_test_cc
}  // namespace orrery
