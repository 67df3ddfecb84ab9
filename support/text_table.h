#ifndef ORRERY_SUPPORT_TEXT_TABLE_H_
#define ORRERY_SUPPORT_TEXT_TABLE_H_

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

// Tables for people, whose columns are as wide as their widest cell.

namespace orrery {

using TextRow = std::vector<std::string>;

/// The rows under each other, two blanks between columns, a line feed behind each row. The first
/// `left` columns stand to the left, the others to the right; nothing is put behind the last cell
/// of a row. Widths count characters of UTF-8. Requires rows of equally many cells, at least one.
std::string TextTable(const std::vector<TextRow>& rows,
                      size_t left = std::numeric_limits<size_t>::max());

}  // namespace orrery

#endif  // ORRERY_SUPPORT_TEXT_TABLE_H_
