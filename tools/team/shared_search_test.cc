#include "tools/team/shared_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/team/team.h"

namespace orrery::tools {
namespace shared_search_test_cc {
namespace {

using testing::HasSubstr;

// Letters between threads.
struct Mail {
  explicit Mail(size_t size) : boxes(size) {}
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<std::deque<Team::Message>> boxes;
};

class ThreadTeam : public Team {
 public:
  ThreadTeam(Mail& mail, int32_t rank) : mail_(mail), rank_(rank) {}
  int32_t rank() const override { return rank_; }
  int32_t size() const override { return static_cast<int32_t>(mail_.boxes.size()); }
  void Send(int32_t to, const std::string& text) override {
    const std::lock_guard<std::mutex> lock(mail_.mutex);
    mail_.boxes[static_cast<size_t>(to)].push_back({rank_, text});
    mail_.arrived.notify_all();
  }
  Message Receive(int32_t most_ms) override {
    std::unique_lock<std::mutex> lock(mail_.mutex);
    std::deque<Message>& box = mail_.boxes[static_cast<size_t>(rank_)];
    mail_.arrived.wait_for(lock, std::chrono::milliseconds(most_ms), [&] { return !box.empty(); });
    if (box.empty()) return {};
    Message message = box.front();
    box.pop_front();
    return message;
  }
  void Abort(int) override { FAIL(); }

 private:
  Mail& mail_;
  const int32_t rank_;
};

const std::string kQuestion = search::HeaderText({});

// What members do with what they get: all of it, unless `fails` is among it.
void Help(Mail& mail, int32_t rank, const std::string& question, size_t fails = 1'000'000) {
  ThreadTeam team(mail, rank);
  TeamMember member(team, question);
  absl::Status status;
  while (const std::optional<size_t> next = member.Next()) {
    if (*next == fails) {
      status = absl::InvalidArgumentError("a bad one");
      break;
    }
    member.Send(absl::StrCat(*next));
  }
  member.End(status);
}

struct Served {
  absl::Status status;
  std::multiset<size_t> records;
};

Served Serve(Mail& mail, size_t candidates, const std::atomic<bool>* stop = nullptr) {
  ThreadTeam team(mail, 0);
  Served served;
  SharedWork work = {.question = kQuestion, .left = {}, .stop = stop, .record = {}};
  for (size_t i = 0; i < candidates; ++i) work.left.push_back(i);
  work.record = [&](const std::string& record) {
    if (record == "13") return absl::UnavailableError("no room");
    served.records.insert(static_cast<size_t>(std::stoi(record)));
    return absl::OkStatus();
  };
  served.status = ServeTeam(team, std::move(work));
  return served;
}

TEST(SharedSearch, DoesEachCandidateOnce) {
  for (const size_t members : {1u, 2u, 5u}) {
    for (const size_t candidates : {0u, 1u, 12u}) {
      Mail mail(members + 1);
      std::vector<std::thread> threads;
      for (size_t i = 1; i <= members; ++i) {
        threads.emplace_back([&, i] { Help(mail, static_cast<int32_t>(i), kQuestion); });
      }
      const Served served = Serve(mail, candidates);
      for (std::thread& thread : threads) thread.join();
      EXPECT_TRUE(served.status.ok()) << served.status;
      EXPECT_EQ(served.records.size(), candidates);
      EXPECT_EQ(std::set<size_t>(served.records.begin(), served.records.end()).size(), candidates);
    }
  }
}

TEST(SharedSearch, GivesTheErrorOfAMember) {
  Mail mail(2);
  std::thread member([&] { Help(mail, 1, kQuestion, 3); });
  EXPECT_EQ(Serve(mail, 10).status.message(), "a bad one");
  member.join();
}

TEST(SharedSearch, EndsWhereARecordCannotBeTaken) {
  Mail mail(2);
  std::thread member([&] { Help(mail, 1, kQuestion); });
  const Served served = Serve(mail, 200);
  member.join();
  EXPECT_EQ(served.status.message(), "no room");
  EXPECT_LT(served.records.size(), 200u);
}

TEST(SharedSearch, RefusesAnotherQuestion) {
  Mail mail(2);
  std::thread member([&] {
    Help(mail, 1,
         search::HeaderText(
             {.question = {.ingredients = {{"--dp", "2", ""}}, .candidates = 0}, .part = {}}));
  });
  const Served served = Serve(mail, 10);
  member.join();
  EXPECT_THAT(std::string(served.status.message()),
              HasSubstr("rank 1 has another question: --dp is 2 there and not given here"));
  EXPECT_TRUE(served.records.empty());
}

TEST(SharedSearch, StopsWhenItIsTold) {
  Mail mail(2);
  const std::atomic<bool> stop = true;
  std::thread member([&] { Help(mail, 1, kQuestion); });
  const Served served = Serve(mail, 1000, &stop);
  member.join();
  EXPECT_TRUE(served.status.ok());
  EXPECT_TRUE(served.records.empty());
}

TEST(FindTeam, IsNoneWithoutMpirun) {
  const auto team = FindTeam();
  ASSERT_TRUE(team.ok()) << team.status();
  EXPECT_EQ(*team, nullptr);
}

}  // namespace
}  // namespace shared_search_test_cc
}  // namespace orrery::tools
