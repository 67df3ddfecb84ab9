#ifndef ORRERY_TOOLS_MODEL_COLUMNS_H_
#define ORRERY_TOOLS_MODEL_COLUMNS_H_

#include <string>
#include <vector>

#include "search/settings/setting.h"

// Tables say a model as one text, "mlp:layers=64,dim=8192", and what it is made of in columns of
// their own, layers and dim, so that whoever reads them need not take the text apart.

namespace orrery::tools {

/// The keys that one of the models, or its preset, names, in the order in which they come. Models
/// from files have none.
std::vector<std::string> ModelColumnNames(const std::vector<std::string>& models);

/// What a model says in these columns: whole numbers, other numbers or words. Nothing where it has
/// no such key, or where its value follows from others.
std::vector<search::ModelColumn> ModelColumnsOf(const std::string& model,
                                                const std::vector<std::string>& names);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_MODEL_COLUMNS_H_
