#include "device/cpu/amx_permission.h"

// Emulated tiles are nobody's to refuse.
latte::AmxAccess latte::amx_access() { return AmxAccess::kGranted; }
