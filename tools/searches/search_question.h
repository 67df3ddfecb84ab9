#ifndef ORRERY_TOOLS_SEARCHES_SEARCH_QUESTION_H_
#define ORRERY_TOOLS_SEARCHES_SEARCH_QUESTION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "search/journal/question.h"
#include "search/settings/settings.h"
#include "tools/flags.h"

// The question of a command line of grid_search, and the command line of a question.

namespace orrery::tools {

/// The question that the flags ask of `candidates` candidates: this program, its flags but those
/// that say where results go and who finds them, the files that they name, and the training steps.
absl::StatusOr<search::Question> QuestionOf(const std::vector<FlagText>& given,
                                            const search::Settings& settings, size_t candidates);

/// The flags of the question of a journal that `--merge`, or `--resume` where there is such a file,
/// names, less those that are given: so nobody has to repeat them.
absl::StatusOr<std::vector<FlagText>> FlagsOfJournals(const std::vector<FlagText>& given);

/// The files that `--merge` names: one a word, or several between commas.
std::vector<std::string> JournalFiles(const std::vector<std::string>& words);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_SEARCHES_SEARCH_QUESTION_H_
