/* A stand-in for libnvidia-ml.so.1: one card, or whatever error code the environment sets for a function.
   STAND_IN_nvmlDeviceGetName=3 makes that function answer NVML_ERROR_NOT_SUPPORTED. What is not here, an old driver
   does not have either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int code(const char *name) {
    char variable[128];
    snprintf(variable, sizeof variable, "STAND_IN_%s", name);
    const char *told = getenv(variable);
    return told ? atoi(told) : 0;
}
#define ANSWER(action) do { int c = code(__func__); if (c) return c; action; return 0; } while (0)

int nvmlInitWithFlags(unsigned flags) { (void)flags; ANSWER(); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int c) { (void)c; return "stand-in"; }
int nvmlSystemGetDriverVersion(char *to, unsigned n) { ANSWER(snprintf(to, n, "580.95.05")); }
int nvmlSystemGetCudaDriverVersion(int *to) { ANSWER(*to = 13000); }
int nvmlDeviceGetCount_v2(unsigned *to) { ANSWER(*to = 1); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **to) { (void)i; ANSWER(*to = (void *)1); }
int nvmlDeviceGetUUID(void *h, char *to, unsigned n) { (void)h; ANSWER(snprintf(to, n, "GPU-stand-in")); }
int nvmlDeviceGetName(void *h, char *to, unsigned n) { (void)h; ANSWER(snprintf(to, n, "Stand-in 6000")); }
int nvmlDeviceGetVbiosVersion(void *h, char *to, unsigned n) { (void)h; ANSWER(snprintf(to, n, "98.02")); }
int nvmlDeviceGetMemoryInfo(void *h, unsigned long long *to) { (void)h; ANSWER(to[0] = 96ULL << 30; to[1] = to[0]; to[2] = 0); }
int nvmlDeviceGetCudaComputeCapability(void *h, int *major, int *minor) { (void)h; ANSWER(*major = 12; *minor = 0); }
int nvmlDeviceGetTotalEccErrors(void *h, int t, int c, unsigned long long *to) { (void)h; (void)t; (void)c; ANSWER(*to = 2); }
int nvmlDeviceGetRemappedRows(void *h, unsigned *a, unsigned *b, unsigned *pending, unsigned *failed) {
    (void)h; ANSWER(*a = 0; *b = 0; *pending = 1; *failed = 0);
}
int nvmlDeviceGetTemperature(void *h, int sensor, unsigned *to) { (void)h; (void)sensor; ANSWER(*to = 40); }
int nvmlDeviceGetTemperatureThreshold(void *h, int which, unsigned *to) { (void)h; (void)which; ANSWER(*to = 92); }
int nvmlDeviceGetPowerManagementLimit(void *h, unsigned *to) { (void)h; ANSWER(*to = 450000); }
int nvmlDeviceGetPowerManagementDefaultLimit(void *h, unsigned *to) { (void)h; ANSWER(*to = 600000); }
int nvmlDeviceGetPersistenceMode(void *h, int *to) { (void)h; ANSWER(*to = 1); }
int nvmlDeviceGetComputeMode(void *h, int *to) { (void)h; ANSWER(*to = 2); }
int nvmlDeviceGetMigMode(void *h, unsigned *now, unsigned *next) { (void)h; ANSWER(*now = 0; *next = 0); }
int nvmlDeviceGetCurrPcieLinkWidth(void *h, unsigned *to) { (void)h; ANSWER(*to = 8); }
int nvmlDeviceGetMaxPcieLinkWidth(void *h, unsigned *to) { (void)h; ANSWER(*to = 16); }
int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *n, void *to) { (void)h; (void)to; ANSWER(*n = 0); }
