#include "tools/traces/packed_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"

namespace orrery::tools {
namespace packed_stream_test_cc {
namespace {

namespace fs = std::filesystem;

class PackedStreamTest : public testing::Test {
 protected:
  PackedStreamTest() {
    folder_ = absl::StrCat(testing::TempDir(), "/orrery_packed_stream_test.", getpid());
    fs::create_directories(folder_);
  }
  ~PackedStreamTest() override { fs::remove_all(folder_); }

  std::string folder_;
};

// More than its buffers hold, in pieces of odd sizes.
std::string WriteMuch(std::ostream& out) {
  std::string all;
  for (int i = 0; i < 40'000; ++i) {
    const std::string piece = absl::StrCat(i * 7919 % 10007, i % 3 == 0 ? "\n" : ",");
    out << piece;
    all += piece;
  }
  out << 'x';
  return all + "x";
}

TEST_F(PackedStreamTest, WritesWhatItGot) {
  auto out = PackedStream::Open(folder_ + "/plain.json").value();
  const std::string all = WriteMuch(*out);
  EXPECT_FALSE(fs::exists(folder_ + "/plain.json"));
  ASSERT_TRUE(out->Finish().ok());
  EXPECT_EQ(ReadFile(folder_ + "/plain.json").value(), all);
}

TEST_F(PackedStreamTest, PacksWhatIsCalledGz) {
  auto out = PackedStream::Open(folder_ + "/t.gz").value();
  const std::string all = WriteMuch(*out);
  ASSERT_TRUE(out->Finish().ok());
  std::string text(all.size() + 10, '\0');
  const gzFile file = gzopen((folder_ + "/t.gz").c_str(), "rb");
  const int size = gzread(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_EQ(text.substr(0, static_cast<size_t>(size)), all);
}

TEST_F(PackedStreamTest, UnfinishedLeavesNothing) {
  {
    auto out = PackedStream::Open(folder_ + "/t.json").value();
    WriteMuch(*out);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(PackedStreamTest, TellsThatNothingCanBeWritten) {
  EXPECT_FALSE(PackedStream::Open("/proc/nothing/t.json").ok());
  auto out = PackedStream::Open("/dev/full").value();
  WriteMuch(*out);
  EXPECT_FALSE(out->Finish().ok());
}

}  // namespace
}  // namespace packed_stream_test_cc
}  // namespace orrery::tools
