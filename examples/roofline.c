// How long must an RMSNorm take on each GPU? A complete program on the library.
// Build: cc examples/roofline.c $(pkg-config --cflags --libs sol) -o roofline
#include <sol/sol.h>
#include <stdio.h>

int main(void) {
  SolError err;
  SolOpArgs args = {.dim = {8192, 4096}, .dtype = SOL_BF16};
  SolCost cost;
  if (sol_op_find("rmsnorm", &args.op, &err) || sol_op_cost(&args, &cost, &err)) {
    fprintf(stderr, "%s\n%s\n", err.message, err.hint);
    return 1;
  }
  printf("rmsnorm 8192x4096 bf16: %.1f MB read, %.1f MB written\n", cost.bytes_read / 1e6,
         cost.bytes_written / 1e6);
  for (int i = 0; i < sol_device_count(); i++) {
    const SolDevice *device = sol_device_at(i);
    SolWork work = sol_work_of_cost(&cost);
    SolRoofline roof;
    if (sol_roofline(device, &work, NULL, &roof, &err))
      printf("%-16s %s\n", device->id, err.message); // a figure that is not published
    else
      printf("%-16s at least %7.1f us, bound by %s\n", device->id, roof.time_us, sol_bound_name(roof.bound));
  }
  return 0;
}
