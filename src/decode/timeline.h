#pragma once
#include "model/timeline.h"
