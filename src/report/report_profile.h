// A profile as facts: the figures of `sol audit`'s bill, measured on a GPU.
#ifndef SOL_REPORT_PROFILE_H
#define SOL_REPORT_PROFILE_H

#include "profile/against.h"
#include "profile/diagnose.h"
#include "report/facts.h"

typedef struct ProfileView {
  size_t top; // kernels shown in full
} ProfileView;

// Everything about a diagnosed profile, into an object.
void report_profile_facts(Fact *root, const Profile *profile, const ProfileRoofs *roofs,
                          const ProfileView *view);
// report_profile_text.c: one of its kernels in full, as text.
void report_profile_kernel_text(Fact *list, const ProfileKernel *kernel);
// Measured and emulated counters compared.
void report_against_facts(Fact *root, const Against *against);

// Shares of sectors; unknown where they were not counted.
double report_profile_l1_hit(const ProfileKernel *kernel);
double report_profile_l2_hit(const ProfileKernel *kernel);

#endif
