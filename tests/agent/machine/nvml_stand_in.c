/* Stands in for NVIDIA's driver library. What it answers is read from the environment at every call, so that a test can
 * change it meanwhile. GPU_<number>_<WHAT> is about one device; GPU_<number>_FAIL and _HANG concern every question about
 * it, GPU_<number>_FAIL_<FUNCTION> one of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3 };

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} Place;

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Utilization;
typedef struct { unsigned version, sensor; int temperature; } Temperature;
typedef struct {
    unsigned field, scope;
    long long at, latency;
    unsigned type, status;
    union { double real; unsigned number; unsigned long long large; } value;
} FieldValue;

static const char *told(long gpu, const char *what) {
    char name[100];
    if (gpu < 0) snprintf(name, sizeof name, "NVML_%s", what);
    else snprintf(name, sizeof name, "GPU_%ld_%s", gpu, what);
    return getenv(name);
}

static unsigned long long number(long gpu, const char *what, unsigned long long otherwise) {
    const char *text = told(gpu, what);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static int asked(long gpu, const char *function) {
    char what[100];
    while (number(gpu, "HANG", 0)) usleep(20000);
    snprintf(what, sizeof what, "FAIL_%s", function);
    int failure = (int)number(gpu, "FAIL", 0);
    return failure ? failure : (int)number(gpu, what, 0);
}

static int text(long gpu, const char *function, const char *otherwise, char *into, unsigned size) {
    int failure = asked(gpu, function);
    if (failure) return failure;
    const char *set = told(gpu, function);
    snprintf(into, size, "%s", set ? set : otherwise);
    return SUCCESS;
}

/* A value that the device has only if the test gave it one, or if there is one for all. */
static int value(void *device, const char *what, unsigned *into, int otherwise) {
    long gpu = (long)device - 1;
    int failure = asked(gpu, what);
    if (failure) return failure;
    if (!told(gpu, what) && otherwise < 0) return NOT_SUPPORTED;
    *into = (unsigned)number(gpu, what, (unsigned long long)otherwise);
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return asked(-1, "INIT"); }
int nvmlShutdown(void) { return asked(-1, "SHUTDOWN"); }
const char *nvmlErrorString(int code) { (void)code; return "An error nobody has heard of"; }
int nvmlSystemGetDriverVersion(char *into, unsigned size) { return text(-1, "DRIVER", "570.86.10", into, size); }
int nvmlSystemGetCudaDriverVersion(int *into) { *into = (int)number(-1, "CUDA", 12080); return asked(-1, "CUDA"); }
int nvmlDeviceGetCount_v2(unsigned *into) { *into = (unsigned)number(-1, "COUNT", 0); return asked(-1, "COUNT"); }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **into) {
    *into = (void *)(long)(index + 1);
    return (int)number(index, "FAIL_HANDLE", 0);
}

int nvmlDeviceGetName(void *device, char *into, unsigned size) {
    return text((long)device - 1, "NAME", "NVIDIA GeForce RTX 3090", into, size);
}

int nvmlDeviceGetUUID(void *device, char *into, unsigned size) {
    char uuid[80];
    snprintf(uuid, sizeof uuid, "GPU-00000000-0000-0000-0000-%012ld", (long)device - 1);
    return text((long)device - 1, "UUID", uuid, into, size);
}

int nvmlDeviceGetMemoryInfo(void *device, Memory *into) {
    long gpu = (long)device - 1;
    into->total = number(gpu, "MEMORY", 24576) << 20;
    into->used = number(gpu, "USED", 512) << 20;
    into->free = into->total - into->used;
    return asked(gpu, "MEMORY");
}

int nvmlDeviceGetUtilizationRates(void *device, Utilization *into) {
    into->memory = 0;
    return value(device, "UTILISATION", &into->gpu, 7);
}

int nvmlDeviceGetTemperatureV(void *device, Temperature *into) {
    return value(device, "TEMPERATURE", (unsigned *)&into->temperature, 41);
}

int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *into) {
    (void)sensor;
    return value(device, "OLD_TEMPERATURE", into, -1);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *into) { return value(device, "POWER", into, 31400); }
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *into) { return value(device, "LIMIT", into, 350000); }
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *into) { return value(device, "PCIE", into, 4); }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *into) { return value(device, "WIDTH", into, 16); }

int nvmlDeviceGetEccMode(void *device, unsigned *now, unsigned *later) {
    *later = 0;
    return value(device, "ECC", now, -1);
}

int nvmlDeviceGetTotalEccErrors(void *device, unsigned kind, unsigned counter, unsigned long long *into) {
    long gpu = (long)device - 1;
    (void)counter;
    *into = number(gpu, kind ? "UNCORRECTED" : "CORRECTED", 0);
    return asked(gpu, "ECC_ERRORS");
}

int nvmlDeviceGetPciInfo_v3(void *device, Place *into) {
    memset(into, 0, sizeof *into);
    into->bus = (unsigned)(long)device;
    return asked((long)device - 1, "PLACE");
}

/* GPU_<n>_LINKS links lead to the device GPU_<n>_PEER, or to a switch if that is not set. */
int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *into) {
    long gpu = (long)device - 1;
    unsigned long long links = number(gpu, "LINKS", 0);
    if (!links) return NOT_SUPPORTED;
    *into = link < links;
    return link < 18 ? asked(gpu, "LINK_STATE") : INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *into) {
    (void)link;
    *into = told((long)device - 1, "PEER") ? 0 : 2;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, Place *into) {
    (void)link;
    memset(into, 0, sizeof *into);
    into->bus = (unsigned)number((long)device - 1, "PEER", 200) + 1;
    return SUCCESS;
}

int nvmlDeviceGetNvLinkVersion(void *device, unsigned link, unsigned *into) {
    (void)link;
    return value(device, "LINK_VERSION", into, 4);
}

int nvmlDeviceGetFieldValues(void *device, int count, FieldValue *values) {
    for (int place = 0; place < count; place++)
        values[place].status = (unsigned)value(device, "LINK_SPEED", &values[place].value.number, -1);
    return SUCCESS;
}
