/* telemetry.c: see telemetry.h. The files: Documentation/ABI/{stable,testing}/sysfs-* of the Linux kernel. */
#include "telemetry.h"

enum { MOST_CORES = 64, MOST_ZONES = 96, MOST_ENTRIES = 64, MOST_WORDS = 96, COLDEST = -40000, HOTTEST = 200000 };

/* Read the first line of root/folder/name; 0 when there is none. */
static int read_line(const char *root, const char *folder, const char *name, char *line, size_t room) {
    char path[512];
    ssize_t got;
    size_t i;
    int file;
    if (!xnn_join(path, sizeof path, root, folder, name)) return 0;
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    got = read(file, line, room - 1);
    close(file);
    if (got <= 0) return 0;
    for (i = 0; i < (size_t)got && line[i] != '\n' && line[i] != 0; i++) continue;
    line[i] = 0;
    return i > 0;
}

static int read_signed(const char *root, const char *folder, const char *name, int64_t *number) {
    char line[32];
    uint64_t size;
    int is_negative;
    if (!read_line(root, folder, name, line, sizeof line)) return 0;
    is_negative = line[0] == '-';
    if (!xnn_read_number(line + is_negative, INT64_MAX, &size)) return 0;
    *number = is_negative ? -(int64_t)size : (int64_t)size;
    return 1;
}

static void say_words(xnn_text *facts, const char *name, const char *words) {
    xnn_text_add(facts, name);
    xnn_text_add(facts, " ");
    xnn_text_add_plain(facts, words, MOST_WORDS);
    xnn_text_add(facts, "\n");
}

static void say_number(xnn_text *facts, const char *name, int64_t number) {
    xnn_text_add(facts, name);
    xnn_text_add(facts, " ");
    xnn_text_add_signed(facts, number);
    xnn_text_add(facts, "\n");
}

/* "/sys/class/<kind>/<prefix><number>/" */
static void numbered(char *folder, size_t room, const char *prefix, unsigned number, const char *rest) {
    xnn_text text;
    xnn_text_start(&text, folder, room);
    xnn_text_add(&text, prefix);
    xnn_text_add_number(&text, number);
    xnn_text_add(&text, rest);
}

/* Say one number of each core, 0 for a core that is off; nothing when no core tells. */
static void say_cores(xnn_text *facts, const char *root, const char *file) {
    int64_t khz[MOST_CORES];
    unsigned i, count = 0;
    for (i = 0; i < MOST_CORES; i++) {
        char folder[96];
        khz[i] = 0;
        numbered(folder, sizeof folder, "/sys/devices/system/cpu/cpu", i, "/cpufreq/");
        if (read_signed(root, folder, file, &khz[i])) count = i + 1;
    }
    if (count == 0) return;
    xnn_text_add(facts, "core_khz");
    for (i = 0; i < count; i++) {
        xnn_text_add(facts, " ");
        xnn_text_add_signed(facts, khz[i]);
    }
    xnn_text_add(facts, "\n");
}

static const char *abi(void) {
#if defined(__aarch64__) && defined(__ANDROID__)
    return "arm64-v8a";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__arm__)
    return "armeabi-v7a";
#else
    return "x86-64";
#endif
}

/* The value of a line "name : value" of /proc/cpuinfo; 0 when there is none among the first. */
static int read_processor(const char *root, const char *name, char *line, size_t room) {
    char path[512], text[4096], *next;
    ssize_t got;
    size_t i = 0;
    int file;
    if (!xnn_join(path, sizeof path, root, "/proc/cpuinfo", "")) return 0;
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    got = read(file, text, sizeof text - 1);
    close(file);
    text[got < 0 ? 0 : got] = 0;
    for (next = text; *next && strncmp(next, name, strlen(name)) != 0;) {
        while (*next && *next != '\n') next++;
        next += *next == '\n';
    }
    if (*next == 0) return 0;
    for (next += strlen(name); *next == ' ' || *next == '\t' || *next == ':';) next++;
    while (next[i] && next[i] != '\n' && i + 1 < room) i++;
    memcpy(line, next, i);
    line[i] = 0;
    return i > 0;
}

static int say_first(xnn_text *facts, const char *root, const char *name, const char *const *files) {
    char line[256];
    for (; *files; files++) {
        if (read_line(root, *files, "", line, sizeof line)) {
            say_words(facts, name, line);
            return 1;
        }
    }
    return 0;
}

void xnn_describe(xnn_text *facts, const char *root, const char *name) {
    static const char *const socs[] = {"/sys/devices/soc0/machine", "/sys/devices/soc0/soc_id",
                                       "/proc/device-tree/compatible", "/proc/device-tree/model", NULL};
    static const char *const serials[] = {"/sys/devices/soc0/serial_number", "/proc/device-tree/serial-number",
                                          "/etc/machine-id", "/proc/sys/kernel/hostname", NULL};
    static const char *const systems[] = {"/proc/version", NULL};
    char line[128];
    say_words(facts, "abi", abi());
    say_first(facts, root, "system", systems);
    if (!say_first(facts, root, "soc", socs) && (read_processor(root, "Hardware", line, sizeof line) ||
                                                 read_processor(root, "model name", line, sizeof line))) {
        say_words(facts, "soc", line);
    }
    if (name[0]) {
        say_words(facts, "serial", name);
    } else {
        say_first(facts, root, "serial", serials);
    }
    say_cores(facts, root, "cpuinfo_max_freq");
}

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static int contains(const char *text, const char *word) {
    for (; *text; text++) {
        if (begins(text, word)) return 1;
    }
    return 0;
}

/* A zone that tells how hot the cores are, by the names that Qualcomm, MediaTek, Exynos, Tensor, Broadcom and Intel use. */
static int is_core_zone(const char *kind) {
    return contains(kind, "cpu") || contains(kind, "CPU") || contains(kind, "soc") || contains(kind, "BIG") ||
           contains(kind, "LITTLE") || contains(kind, "MID") || contains(kind, "x86_pkg") || contains(kind, "tsens");
}

static void say_zones(xnn_text *facts, const char *root) {
    int64_t hottest = COLDEST, hottest_core = COLDEST;
    unsigned i;
    for (i = 0; i < MOST_ZONES; i++) {
        char folder[96], kind[64];
        int64_t heat;
        numbered(folder, sizeof folder, "/sys/class/thermal/thermal_zone", i, "/");
        if (!read_signed(root, folder, "temp", &heat)) continue;
        if (heat > -200 && heat < 200) heat *= 1000; /* old kernels of some vendors say degrees */
        if (heat <= COLDEST || heat >= HOTTEST) continue; /* a sensor that is off */
        if (!read_line(root, folder, "type", kind, sizeof kind)) kind[0] = 0;
        xnn_text_add(facts, "zone ");
        xnn_text_add_signed(facts, heat);
        say_words(facts, "", kind);
        hottest = heat > hottest ? heat : hottest;
        if (is_core_zone(kind) && heat > hottest_core) hottest_core = heat;
    }
    if (hottest_core > COLDEST) hottest = hottest_core;
    if (hottest > COLDEST) say_number(facts, "millicelsius", hottest);
}

/* Call `visit` with each "<folder><entry>/" there is. */
static void each_entry(xnn_text *facts, const char *root, const char *folder,
                       void (*visit)(xnn_text *, const char *, const char *)) {
    char path[512], inner[384];
    struct dirent *entry;
    DIR *entries;
    int left = MOST_ENTRIES;
    if (!xnn_join(path, sizeof path, root, folder, "")) return;
    entries = opendir(path);
    while (entries != NULL && left > 0 && (entry = readdir(entries)) != NULL) {
        if (entry->d_name[0] == '.') continue;
        left--;
        if (xnn_join(inner, sizeof inner, folder, entry->d_name, "/")) visit(facts, root, inner);
    }
    if (entries != NULL) closedir(entries);
}

static void say_battery(xnn_text *facts, const char *root, const char *folder) {
    char kind[32];
    int64_t number;
    if (!read_line(root, folder, "type", kind, sizeof kind) || strcmp(kind, "Battery") != 0) return;
    if (!read_signed(root, folder, "capacity", &number)) return; /* the pen's or the mouse's, say */
    say_number(facts, "battery_percent", number);
    if (read_signed(root, folder, "temp", &number)) say_number(facts, "battery_millicelsius", number * 100);
}

static void say_screen(xnn_text *facts, const char *root, const char *folder) {
    int64_t light, power = 0;
    if (!read_signed(root, folder, "brightness", &light)) return;
    read_signed(root, folder, "bl_power", &power);
    say_number(facts, "screen_on", light > 0 && power == 0);
}

/* A core may not run at its top speed now: someone has lowered the ceiling, or a cooling device is at work. */
static void say_throttled(xnn_text *facts, const char *root) {
    int is_known = 0, is_throttled = 0;
    unsigned i;
    for (i = 0; i < MOST_CORES; i++) {
        char folder[96];
        int64_t now, top;
        numbered(folder, sizeof folder, "/sys/devices/system/cpu/cpu", i, "/cpufreq/");
        if (!read_signed(root, folder, "scaling_max_freq", &now) || !read_signed(root, folder, "cpuinfo_max_freq", &top))
            continue;
        is_known = 1;
        is_throttled |= now < top;
    }
    for (i = 0; i < MOST_ZONES; i++) {
        char folder[96], kind[64];
        int64_t state;
        numbered(folder, sizeof folder, "/sys/class/thermal/cooling_device", i, "/");
        if (!read_line(root, folder, "type", kind, sizeof kind) || !read_signed(root, folder, "cur_state", &state))
            continue;
        if (!contains(kind, "cpu") && !contains(kind, "Processor")) continue; /* a fan, a charger */
        is_known = 1;
        is_throttled |= state > 0;
    }
    if (is_known) say_number(facts, "throttled", is_throttled);
}

/* Runnable threads: the fourth word of /proc/loadavg is "RUNNABLE/ALL". */
static void say_load(xnn_text *facts, const char *root) {
    char line[96], *next = line, *end;
    uint64_t runnable;
    int word;
    if (!read_line(root, "/proc/loadavg", "", line, sizeof line)) return;
    for (word = 0; word < 3; word++) {
        while (*next && *next != ' ') next++;
        if (*next) next++;
    }
    for (end = next; *end && *end != '/'; end++) continue;
    *end = 0;
    if (xnn_read_number(next, 1000000, &runnable)) say_number(facts, "load", (int64_t)runnable);
}

void xnn_status(xnn_text *facts, const char *root) {
    char line[64];
    say_cores(facts, root, "scaling_cur_freq");
    if (read_line(root, "/sys/devices/system/cpu/cpu0/cpufreq/", "scaling_governor", line, sizeof line)) {
        say_words(facts, "governor", line);
    }
    say_throttled(facts, root);
    say_load(facts, root);
    each_entry(facts, root, "/sys/class/power_supply/", say_battery);
    each_entry(facts, root, "/sys/class/backlight/", say_screen);
    say_zones(facts, root);
}
