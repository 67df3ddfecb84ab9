#ifndef ORRERY_TOOLS_REPORTS_DOCUMENT_H_
#define ORRERY_TOOLS_REPORTS_DOCUMENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/reports/view.h"

// A report as data: what a page shows, and what `tests/` check against the JSON of a program.

namespace orrery::tools {

/// A figure of a run.
struct Figure {
  std::string name;   // as in the JSON of a report: "step_time_s"
  std::string title;  // "step time"
  std::string unit;   // as in Quantity
  Cell value = {};
};

/// One configuration that was played.
struct RunDocument {
  std::string name;   // "1", "largest"
  std::string flags;  // "--dp 8 --hp 1 …"
  int64_t row = -1;   // of the search that it belongs to; -1: of none
  std::vector<Figure> figures = {};
  std::vector<Section> sections = {};
};

/// What all candidates say of one thing, in the order of the rows.
struct CandidateColumn {
  std::string name, title = {}, unit = {};
  bool is_axis = false;               // of the plans
  std::vector<Cell> words = {};       // each once
  std::vector<uint32_t> places = {};  // by row: of its word
};

/// A search: candidates by columns, and runs of some of them.
struct SearchDocument {
  std::string title;
  std::vector<CandidateColumn> columns = {};
  size_t row_count = 0, all_rows = 0;  // of the columns; of the search
  std::vector<int64_t> ranked = {};    // rows that are feasible, the best first
  std::vector<int64_t> front = {};     // rows of the Pareto front, the fastest first
  std::vector<RunDocument> runs = {};
};

/// So many fields: what the head of the page says, and its parts.
struct Document {
  std::string title, program = {}, command = {};
  std::vector<std::string> notes = {};  // warnings, assumptions
  std::vector<Section> sections = {};
  std::vector<SearchDocument> searches = {};
  std::vector<RunDocument> runs = {};
};

/// The document as JSON: numbers as nlohmann writes them, the shortest that read back as the same;
/// what is not finite is null. A column that says the same in all rows is one value, one of few
/// values a dictionary and indices.
std::string DocumentJson(const Document& document);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_DOCUMENT_H_
