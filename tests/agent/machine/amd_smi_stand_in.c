/* Stands in for AMD's library: what the agent asks of it. The binding wants some hundred functions more; the test adds
 * them, each saying that it is not supported. Settings as in nvml_stand_in.c, with AMD_<number>_<WHAT>. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char name[256]; uint32_t vendor; char vendor_name[256]; uint32_t subvendor; uint64_t device; uint32_t revision;
    char serial[256]; uint32_t oam, units, padding; uint64_t graphics; uint32_t subsystem, reserved[21];
} Chip;
typedef struct { uint32_t total, used, reserved[2]; } Memory;
typedef struct { char version[256], date[256], name[256]; } Version;
typedef struct { uint32_t graphics, memory, media, reserved[13]; } Activity;
typedef struct {
    uint64_t socket; uint32_t current, average; uint64_t voltages[3]; uint32_t limit, padding; uint64_t reserved[18];
} Power;
typedef struct { uint64_t corrected, uncorrected, deferred, reserved[5]; } Errors;

static unsigned long long number(void *device, const char *what, unsigned long long otherwise) {
    char name[100];
    snprintf(name, sizeof name, "AMD_%ld_%s", (long)device - 1, what);
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static unsigned devices(void) { const char *count = getenv("AMD_COUNT"); return count ? (unsigned)atoi(count) : 0; }
static int asked(void *device) { return (int)number(device, "FAIL", 0); }

int amdsmi_init(uint64_t flags) { (void)flags; const char *code = getenv("AMD_INIT"); return code ? atoi(code) : 0; }
int amdsmi_shut_down(void) { return 0; }

int amdsmi_get_socket_handles(uint32_t *count, void **sockets) {
    *count = devices();
    for (uint32_t place = 0; sockets && place < *count; place++) sockets[place] = (void *)(long)(place + 1);
    return 0;
}

int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **handles) {
    *count = 1;
    if (handles) handles[0] = socket;
    return 0;
}

int amdsmi_get_gpu_asic_info(void *device, Chip *into) {
    memset(into, 0, sizeof *into);
    strcpy(into->name, "AMD Instinct MI300X");
    strcpy(into->vendor_name, "Advanced Micro Devices Inc. [AMD/ATI]");
    return asked(device);
}

int amdsmi_get_gpu_device_uuid(void *device, uint32_t *size, char *into) {
    snprintf(into, *size, "c4ff74a1-0000-1000-8000-%012ld", (long)device - 1);
    return asked(device);
}

int amdsmi_get_gpu_vram_usage(void *device, Memory *into) {
    into->total = (uint32_t)number(device, "MEMORY", 196592);
    into->used = (uint32_t)number(device, "USED", 283);
    return asked(device);
}

int amdsmi_get_gpu_driver_info(void *device, Version *into) {
    memset(into, 0, sizeof *into);
    strcpy(into->version, "6.10.5");
    strcpy(into->name, "amdgpu");
    return asked(device);
}

int amdsmi_get_gpu_activity(void *device, Activity *into) {
    into->graphics = (uint32_t)number(device, "UTILISATION", 0xFFFF);
    into->memory = into->media = 0xFFFF;
    return asked(device);
}

int amdsmi_get_power_info(void *device, Power *into) {
    memset(into, 0, sizeof *into);
    into->current = (uint32_t)number(device, "POWER", 140);
    into->average = 0xFFFF;
    into->limit = 750;
    return asked(device);
}

int amdsmi_get_temp_metric(void *device, uint32_t sensor, uint32_t metric, int64_t *into) {
    (void)metric;
    *into = (int64_t)number(device, "TEMPERATURE", 45);
    return sensor == 0 ? 2 : asked(device);
}

int amdsmi_get_gpu_total_ecc_count(void *device, Errors *into) {
    memset(into, 0, sizeof *into);
    into->corrected = number(device, "CORRECTED", 0);
    return asked(device);
}

int amdsmi_topo_get_link_type(void *one, void *other, uint64_t *hops, uint32_t *type) {
    (void)one, (void)other;
    *hops = 1;
    *type = 2;
    return 0;
}
