#include "search/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "search/journal/journal_test_util.h"
#include "search/journal/merge.h"
#include "support/file.h"

namespace orrery::search {
namespace journal_test_cc {
namespace {

using testing::HasSubstr;

class JournalTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name = "journal") const { return folder_ + "/" + name; }

  // A journal of the part with so many of its candidates done.
  void WriteJournal(const std::string& path, const Part& part, size_t most = 100) const {
    absl::StatusOr<Journal> journal = Journal::Open(path, {question_, part});
    ASSERT_TRUE(journal.ok()) << journal.status();
    for (const size_t i : CandidatesOf(part, plans_.size())) {
      if (most-- == 0) break;
      ASSERT_TRUE(journal->Append(Record(i)).ok());
    }
  }

  std::string Record(size_t candidate) const {
    CandidateResults done = RandomResults(static_cast<uint32_t>(candidate), {plans_[candidate]});
    done.candidate = candidate;
    return RecordText(done, plans_[candidate]);
  }

  std::string Opened(const std::string& path, const JournalHeader& header) const {
    const auto journal = Journal::Open(path, header);
    return journal.ok() ? "ok" : std::string(journal.status().message());
  }

  std::string Merged(const std::vector<std::string>& paths) const {
    std::vector<NamedJournal> journals;
    for (const std::string& path : paths) journals.push_back({path, ReadJournal(path).value()});
    const auto merged = MergeJournals(journals, question_, plans_);
    return merged.ok() ? absl::StrCat(merged->size()) : std::string(merged.status().message());
  }

  const std::string folder_ =
      (std::filesystem::temp_directory_path() / absl::StrCat("orrery_journal_", getpid())).string();
  const Question question_ = {.ingredients = {{"--batch-size", "512", ""}}, .candidates = 10};
  const std::vector<ParallelPlan> plans_ = FewPlans(10);
};

TEST_F(JournalTest, GoesOnWhereItWas) {
  const JournalHeader header = {question_, {}};
  {
    absl::StatusOr<Journal> journal = Journal::Open(Path("new/journal"), header);
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_TRUE(journal->contents().records.empty());
    ASSERT_TRUE(journal->Append(Record(7)).ok());
  }
  absl::StatusOr<Journal> journal = Journal::Open(Path("new/journal"), header);
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE(journal->Append(Record(2)).ok());
  EXPECT_EQ(journal->contents().records, std::vector<std::string>{Record(7)});
  const auto contents = ReadJournal(Path("new/journal"));
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->header.question, question_);
  const auto known = ResultsOf(*contents, plans_);
  ASSERT_TRUE(known.ok()) << known.status();
  ASSERT_EQ(known->size(), 2u);
  EXPECT_EQ(RecordText({2, known->at(2)}, plans_[2]), Record(2));
  EXPECT_EQ(RecordText({7, known->at(7)}, plans_[7]), Record(7));
}

// Wherever the file ends: whole lines count, and what is added later stands on lines of its own.
TEST_F(JournalTest, DropsATornTailAtEveryByte) {
  WriteJournal(Path(), {}, 3);
  const std::string text = ReadFile(Path()).value();
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string torn = text.substr(0, size);
    ASSERT_TRUE(WriteFile(Path("torn"), torn).ok());
    const auto lines = static_cast<size_t>(std::ranges::count(torn, '\n'));
    {
      absl::StatusOr<Journal> journal = Journal::Open(Path("torn"), {question_, {}});
      ASSERT_TRUE(journal.ok()) << size << journal.status();
      EXPECT_EQ(journal->contents().records.size(), lines > 0 ? lines - 1 : 0) << size;
      EXPECT_EQ(journal->contents().damaged, 0);
      ASSERT_TRUE(journal->Append(Record(9)).ok());
    }
    const auto again = ReadJournal(Path("torn"));
    ASSERT_TRUE(again.ok()) << size << again.status();
    EXPECT_EQ(again->damaged, 0) << size;
    ASSERT_EQ(again->records.size(), lines > 0 ? lines : 1) << size;
    EXPECT_EQ(again->records.back(), Record(9));
  }
}

// One byte changed anywhere is seen: at most the two lines that it joins are lost, and counted.
TEST_F(JournalTest, SeesEveryDamagedByte) {
  WriteJournal(Path(), {}, 3);
  const std::string text = ReadFile(Path()).value();
  const size_t header = text.find('\n') + 1;
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char flipped : {'\x01', '\x20', '\x7f'}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ flipped);
      const auto contents = ParseJournal(damaged);
      if (i < header) {
        EXPECT_THAT(std::string(contents.status().message()), HasSubstr("is no journal")) << i;
        continue;
      }
      ASSERT_TRUE(contents.ok()) << i << contents.status();
      EXPECT_TRUE(contents->damaged > 0 || i + 1 == text.size()) << i;
      EXPECT_LE(contents->records.size(), 2u) << i;
      for (const std::string& record : contents->records) {
        EXPECT_THAT(text, HasSubstr(record)) << i;
      }
    }
  }
}

TEST_F(JournalTest, RefusesWhatIsNotItsOwn) {
  WriteJournal(Path(), {.index = 1, .count = 2});
  Question other = question_;
  other.ingredients[0].text = "256";
  EXPECT_THAT(
      Opened(Path(), {other, {.index = 1, .count = 2}}),
      HasSubstr("is the journal of another search: --batch-size is 512 there and 256 here"));
  EXPECT_THAT(Opened(Path(), {question_, {.index = 2, .count = 2}}),
              HasSubstr("is the journal of part 1/2; wanted that of part 2/2"));
  EXPECT_EQ(Opened(Path(), {question_, {.index = 1, .count = 2}}), "ok");
  EXPECT_THAT(Opened(folder_, {question_, {}}), HasSubstr("cannot be written"));
  EXPECT_THAT(Opened("/dev/null", {question_, {}}), HasSubstr("is no regular file"));
  // Somebody's own file stays as it is, also one without an end of a line.
  for (const char* text : {"my notes\n", "my notes", "{}\n\n"}) {
    ASSERT_TRUE(WriteFile(Path("notes"), text).ok());
    EXPECT_THAT(Opened(Path("notes"), {question_, {}}), HasSubstr("is no journal of a search"));
    EXPECT_EQ(ReadFile(Path("notes")).value(), text);
  }
}

TEST_F(JournalTest, IsWrittenByOne) {
  {
    const auto journal = Journal::Open(Path(), {question_, {}});
    ASSERT_TRUE(journal.ok());
    EXPECT_THAT(Opened(Path(), {question_, {}}), HasSubstr("another search writes this journal"));
  }
  EXPECT_EQ(Opened(Path(), {question_, {}}), "ok");
}

TEST_F(JournalTest, CountsACandidateOnce) {
  WriteJournal(Path(), {}, 2);
  {
    auto journal = Journal::Open(Path(), {question_, {}});
    ASSERT_TRUE(journal->Append(Record(0)).ok());
  }
  EXPECT_EQ(ResultsOf(ReadJournal(Path()).value(), plans_)->size(), 2u);
}

TEST_F(JournalTest, RefusesCandidatesOfOtherParts) {
  const Part first = {.index = 1, .count = 2};
  {
    auto journal = Journal::Open(Path(), {question_, first});
    const std::vector<size_t> others = CandidatesOf({.index = 2, .count = 2}, plans_.size());
    ASSERT_TRUE(journal->Append(Record(others[0])).ok());
  }
  EXPECT_THAT(std::string(ResultsOf(ReadJournal(Path()).value(), plans_).status().message()),
              HasSubstr("is not of part 1/2"));
}

TEST_F(JournalTest, MergesAllParts) {
  for (const int64_t count : {1, 2, 3, 7}) {
    std::vector<std::string> paths;
    for (int64_t i = count; i >= 1; --i) {
      paths.push_back(Path(absl::StrCat(i, "of", count)));
      WriteJournal(paths.back(), {.index = i, .count = count});
    }
    EXPECT_EQ(Merged(paths), "10") << count;
  }
}

TEST_F(JournalTest, SaysWhatAMergeLacks) {
  for (int64_t i = 1; i <= 3; ++i) {
    WriteJournal(Path(absl::StrCat(i)), {.index = i, .count = 3}, i == 2 ? 1 : 100);
  }
  EXPECT_THAT(Merged({Path("1"), Path("3")}),
              HasSubstr("of 3 parts there are 2 journals; wanted that of part 2/3, too"));
  EXPECT_THAT(Merged({Path("1"), Path("2"), Path("3")}),
              testing::ContainsRegex("/2: has 1 of the [34] candidates of part 2/3"));
  EXPECT_THAT(Merged({Path("1"), Path("1"), Path("3")}),
              HasSubstr("is part 1/3, as " + Path("1") + " is"));
  WriteJournal(Path("half"), {.index = 1, .count = 2});
  EXPECT_THAT(Merged({Path("1"), Path("half")}), HasSubstr("wanted parts of one number of parts"));
  Question other = question_;
  other.ingredients[0].text = "256";
  EXPECT_EQ(Opened(Path("other"), {other, {.index = 1, .count = 3}}), "ok");
  EXPECT_THAT(Merged({Path("1"), Path("other")}), HasSubstr("is the journal of another search"));
}

}  // namespace
}  // namespace journal_test_cc
}  // namespace orrery::search
