#include "tools/reports/page.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "support/check.h"
#include "support/file.h"
#include "support/status.h"
#include "tools/reports/gzip.h"
#include "tools/reports/page_assets.h"

namespace orrery::tools {
namespace page_cc {
namespace {

std::string EscapedHtml(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

bool NeedsQuotes(absl::string_view word) {
  return word.empty() || std::ranges::any_of(word, [](char letter) {
           return !absl::ascii_isalnum(static_cast<unsigned char>(letter)) &&
                  absl::string_view("-_=+./:,@%").find(letter) == absl::string_view::npos;
         });
}

// Appends what of `html` comes before the marker `name`, and returns what comes behind it.
absl::string_view UpTo(absl::string_view html, absl::string_view name, std::string& page) {
  const std::string marker = absl::StrCat("{{", name, "}}");
  const size_t at = html.find(marker);
  ORRERY_CHECK(at != absl::string_view::npos) << "page.html has no " << marker;
  absl::StrAppend(&page, html.substr(0, at));
  return html.substr(at + marker.size());
}

}  // namespace
}  // namespace page_cc

absl::StatusOr<std::string> HtmlPage(const Document& document) {
  const PageAssets& assets = AllPageAssets();
  ORRERY_ASSIGN_OR_RETURN(const std::string packed, Gzip(DocumentJson(document)));
  std::string page;
  absl::string_view rest = page_cc::UpTo(assets.html, "title", page);
  absl::StrAppend(&page, page_cc::EscapedHtml(document.title));
  rest = page_cc::UpTo(rest, "style", page);
  for (const absl::string_view style : assets.styles) absl::StrAppend(&page, style, "\n");
  rest = page_cc::UpTo(rest, "data", page);
  absl::StrAppend(&page, absl::Base64Escape(packed));
  rest = page_cc::UpTo(rest, "script", page);
  for (const absl::string_view script : assets.scripts) absl::StrAppend(&page, script, "\n");
  absl::StrAppend(&page, rest);
  return page;
}

absl::Status WritePage(const Document& document, const std::string& path) {
  ORRERY_ASSIGN_OR_RETURN(const std::string page, HtmlPage(document));
  return WriteFile(path, page);
}

std::string CommandText(int argc, const char* const* argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    if (i == 0) word = word.substr(word.rfind('/') + 1);
    if (page_cc::NeedsQuotes(word)) {
      word = absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
    }
    absl::StrAppend(&text, text.empty() ? "" : " ", word);
  }
  return text;
}

}  // namespace orrery::tools
