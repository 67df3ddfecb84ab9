#include "ir/op_info.h"
