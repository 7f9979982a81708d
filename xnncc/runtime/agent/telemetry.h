/* telemetry.h: what the device says of itself, from sysfs and procfs, as lines "name value". What cannot be read is left
 * out. `root` stands before every path: "" on a device, a folder of made-up files in a test. */
#ifndef XNN_AGENT_TELEMETRY_H
#define XNN_AGENT_TELEMETRY_H

#include "text.h"

/* What does not change: abi, system, soc, serial (`name` when it is not empty), core_khz of each core. */
void xnn_describe(xnn_text *facts, const char *root, const char *name);

/* What it does now: core_khz, governor, millicelsius, zone, battery_percent, battery_millicelsius, load, throttled,
 * screen_on. */
void xnn_status(xnn_text *facts, const char *root);

#endif
