#include "tools/reports/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/file.h"
#include "tools/reports/gzip_test_util.h"
#include "tools/reports/page_assets.h"

namespace orrery::tools {
namespace page_test_cc {
namespace {

using testing::HasSubstr;
using testing::Not;

Document SomeDocument() { return {.title = "<b> & \"c\"", .program = "simulate"}; }

// What stands between two texts of a page.
std::string Between(const std::string& page, const std::string& begin, const std::string& end) {
  const size_t from = page.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  const size_t start = from + begin.size();
  return page.substr(start, page.find(end, start) - start);
}

TEST(HtmlPage, HoldsTheDocument) {
  const std::string page = HtmlPage(SomeDocument()).value();
  const std::string data = Between(page, "id=\"document\">", "</script>");
  std::string packed;
  ASSERT_TRUE(absl::Base64Unescape(data, &packed));
  EXPECT_EQ(Unpacked(packed), DocumentJson(SomeDocument()));
}

TEST(HtmlPage, EscapesTheTitle) {
  EXPECT_EQ(Between(HtmlPage(SomeDocument()).value(), "<title>", "</title>"),
            "&lt;b&gt; &amp; &quot;c&quot;");
}

// It opens from disk: whatever it needs is in it.
TEST(HtmlPage, AsksNothingOfTheNetwork) {
  const std::string page = HtmlPage(SomeDocument()).value();
  for (const char* attribute : {" src=", "@import", "url(http", "href=\"http"}) {
    EXPECT_THAT(page.substr(0, page.find("id=\"document\"")), Not(HasSubstr(attribute)));
  }
  for (const char* marker : {"{{title}}", "{{style}}", "{{data}}", "{{script}}"}) {
    EXPECT_THAT(page, Not(HasSubstr(marker)));
  }
}

// A script that held the end of one would end the script there.
TEST(PageAssets, MayStandInAPage) {
  const PageAssets& assets = AllPageAssets();
  for (const absl::string_view script : assets.scripts) {
    EXPECT_FALSE(script.empty());
    EXPECT_FALSE(absl::StrContains(script, "</script"));
  }
  for (const absl::string_view style : assets.styles) {
    EXPECT_FALSE(absl::StrContains(style, "</style"));
  }
}

TEST(WritePage, WritesIt) {
  const std::string path = absl::StrCat(testing::TempDir(), "/page.html");
  ASSERT_TRUE(WritePage(SomeDocument(), path).ok());
  EXPECT_EQ(ReadFile(path).value(), HtmlPage(SomeDocument()).value());
  EXPECT_FALSE(WritePage(SomeDocument(), "/dev/null/x.html").ok());
}

TEST(CommandText, IsWhatAShellReads) {
  const char* const words[] = {"build/bin/simulate", "--model", "mlp:layers=4,dim=8", "--shard",
                               "it's=hp@1",          ""};
  EXPECT_EQ(CommandText(6, words),
            "simulate --model mlp:layers=4,dim=8 --shard 'it'\\''s=hp@1' ''");
}

}  // namespace
}  // namespace page_test_cc
}  // namespace orrery::tools
