/**
 * System calls that commands in the sandbox may not make, with their numbers on x64 and arm64 (`-`: there is
 * none). They are those that the default profiles of container engines refuse to a process without
 * capabilities. Numbers from 424 on are the same everywhere.
 */
export const REFUSED_CALLS = `
  # keys of the kernel, which no namespace divides
  add_key 248 217
  keyctl 250 219
  request_key 249 218

  # parts of the kernel in which holes are found most often
  bpf 321 280
  io_uring_setup 425 425
  io_uring_enter 426 426
  io_uring_register 427 427
  perf_event_open 298 241
  userfaultfd 323 282
  fanotify_init 300 262
  lookup_dcookie 212 18

  # file systems and namespaces
  mount 165 40
  umount2 166 39
  pivot_root 155 41
  chroot 161 51
  unshare 272 97
  setns 308 268
  open_tree 428 428
  move_mount 429 429
  fsopen 430 430
  fsconfig 431 431
  fsmount 432 432
  fspick 433 433
  mount_setattr 442 442
  open_by_handle_at 304 265
  quotactl 179 60
  quotactl_fd 443 443
  swapon 167 224
  swapoff 168 225

  # other processes
  kcmp 312 272
  pidfd_getfd 438 438
  process_madvise 440 440
  migrate_pages 256 238
  move_pages 279 239
  get_mempolicy 239 236
  set_mempolicy 238 237
  set_mempolicy_home_node 450 450
  mbind 237 235

  # the machine
  init_module 175 105
  finit_module 313 273
  delete_module 176 106
  create_module 174 -
  query_module 178 -
  get_kernel_syms 177 -
  kexec_load 246 104
  kexec_file_load 320 294
  reboot 169 142
  acct 163 89
  syslog 103 116
  clock_settime 227 112
  settimeofday 164 170
  sethostname 170 161
  setdomainname 171 162
  vhangup 153 58
  ioperm 173 -
  iopl 172 -
  lsm_get_self_attr 459 459
  lsm_set_self_attr 460 460
  lsm_list_modules 461 461

  # of old kernels
  _sysctl 156 -
  nfsservctl 180 42
  sysfs 139 -
  uselib 134 -
  ustat 136 -
`;

/** The newest system call that was looked at, setxattrat and its relatives; programs do without newer ones. */
export const NEWEST_CALL = 466;

/** Calls of which it depends on their arguments, or that programs find missing instead of forbidden. */
export const SPECIAL_CALLS = `
  clone 56 220
  clone3 435 435
  openat2 437 437
  personality 135 92
  socket 41 198
  chmod 90 -
  fchmod 91 52
  fchmodat 268 53
  fchmodat2 452 452
  creat 85 -
  open 2 -
  openat 257 56
  mknod 133 -
  mknodat 259 33
`;

/** Numbers by name, of one processor. */
export function callNumbers(list: string, processor: "x64" | "arm64"): Map<string, number> {
  const rows = list.split("\n").map((line) => line.replace(/#.*/, "").trim());
  const numbers = rows.flatMap((row): [string, number][] => {
    const [name = "", x64 = "-", arm64 = "-"] = row.split(" ");
    const number = Number(processor === "x64" ? x64 : arm64);
    return name === "" || Number.isNaN(number) ? [] : [[name, number]];
  });
  return new Map(numbers);
}
