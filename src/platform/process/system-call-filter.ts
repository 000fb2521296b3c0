// The seccomp program of a command in the sandbox, as the bytes of classic BPF that bubblewrap loads: the system calls that no namespace
// confines, and those that create a user namespace, in which a command would have every capability. Pure: it makes bytes. Not an allow
// list, because checkers need unknown calls. Returns ENOSYS as an older kernel does, so that a program uses its fallback.
import { constants } from 'node:os';

interface Machine {
  /** AUDIT_ARCH_*: which architecture the kernel reports for a call. */
  readonly audit: number;
  /** The numbers of calls that differ between machines. */
  readonly numbers: Readonly<Record<'socket' | 'clone' | 'unshare' | 'setns' | Missing, number>>;
  /** System calls from here on are of another ABI in the same architecture; left out where there is none. */
  readonly foreignFrom?: number;
}

/** Keyrings belong to no namespace; userfaultfd lets a program stop the kernel in the middle of a copy. */
const missing = ['add_key', 'request_key', 'keyctl', 'userfaultfd'] as const;
type Missing = (typeof missing)[number];

const machines: ReadonlyMap<string, Machine> = new Map([
  [
    'x64',
    {
      audit: 0xc000003e,
      numbers: {
        ...{ socket: 41, clone: 56, unshare: 272, setns: 308 },
        ...{ add_key: 248, request_key: 249, keyctl: 250, userfaultfd: 323 },
      },
      // x32 has the same AUDIT_ARCH, and sets a bit of the number.
      foreignFrom: 0x40000000,
    },
  ],
  [
    'arm64',
    {
      audit: 0xc00000b7,
      numbers: {
        ...{ socket: 198, clone: 220, unshare: 97, setns: 268 },
        ...{ add_key: 217, request_key: 218, keyctl: 219, userfaultfd: 282 },
      },
    },
  ],
]);

/** io_uring_setup, io_uring_enter, io_uring_register: the same numbers on every machine. */
const uring = [425, 426, 427] as const;
/** Its flags are in memory, where no filter can read them. The C library then calls clone. */
const clone3 = 435;
/** Belongs to no network namespace: a command in a virtual machine reaches services of the machine below it. */
const afVsock = 40;
/** CLONE_NEWUSER; the kernel uses the lower half of the flags of clone, and refuses an upper half of unshare. */
const newUserNamespace = 0x10000000;

/** Places in struct seccomp_data; of an argument its low half, little-endian: families and flags are in it. */
const at = { number: 0, architecture: 4, firstArgument: 16 } as const;
const codes = {
  load: 0x20,
  jumpIfEqual: 0x15,
  jumpIfAtLeast: 0x35,
  jumpIfAnyBit: 0x45,
  answer: 0x06,
} as const;
const errnoAnswer = 0x00050000;
const answers = {
  allow: 0x7fff0000,
  refuse: errnoAnswer | constants.errno.ENOSYS,
  forbid: errnoAnswer | constants.errno.EPERM,
} as const;

/** Steps that compare the first argument of a call. */
type Block = 'family' | 'flags';
type Target = 'next' | Block | keyof typeof answers;
/** An operation, its operand, and the targets if its condition holds and if not. */
type Step = readonly [code: keyof typeof codes, operand: number, holds?: Target, fails?: Target];

export interface SystemCallFilters {
  /** Rejects new user namespaces. */
  readonly confined: Uint8Array;
  /** For a command that needs user namespaces: permits them, and rejects the other calls of this filter. */
  readonly nested: Uint8Array;
}

/**
 * Creates the filters for an architecture.
 * @param machine as `process.arch`
 * @returns arrays of struct sock_filter; undefined for an architecture with system call numbers that are not listed here
 */
export function systemCallFilters(machine: string): SystemCallFilters | undefined {
  const known = machines.get(machine);
  if (known === undefined) return undefined;
  return { confined: filterOf(known, namespaceSteps(known)), nested: filterOf(known, []) };
}

function filterOf({ audit, numbers, foreignFrom }: Machine, namespaces: readonly Step[]): Uint8Array {
  const foreign: Step[] = foreignFrom === undefined ? [] : [['jumpIfAtLeast', foreignFrom, 'refuse', 'next']];
  const refused = [...uring, ...missing.map((name) => numbers[name])];
  return assemble({
    start: [
      // Compare the architecture first, because the same number is another call in another architecture.
      ['load', at.architecture],
      ['jumpIfEqual', audit, 'next', 'refuse'],
      ['load', at.number],
      ...foreign,
      ...refused.map((number): Step => ['jumpIfEqual', number, 'refuse', 'next']),
      ...namespaces,
      ['jumpIfEqual', numbers.socket, 'family', 'allow'],
    ],
    family: [
      ['load', at.firstArgument],
      ['jumpIfEqual', afVsock, 'refuse', 'allow'],
    ],
    flags: [
      ['load', at.firstArgument],
      ['jumpIfAnyBit', newUserNamespace, 'forbid', 'allow'],
    ],
  });
}

/** setns needs a capability in the target namespace, so that it is usable only together with a new user namespace. */
function namespaceSteps({ numbers }: Machine): Step[] {
  return [
    ['jumpIfEqual', clone3, 'refuse', 'next'],
    ['jumpIfEqual', numbers.setns, 'forbid', 'next'],
    ['jumpIfEqual', numbers.clone, 'flags', 'next'],
    ['jumpIfEqual', numbers.unshare, 'flags', 'next'],
  ];
}

const stepBytes = 8;

/** Encodes the steps. A jump is forward only and counts the skipped steps. The results are the last steps. */
function assemble({ start, family, flags }: Readonly<Record<'start' | Block, readonly Step[]>>): Uint8Array {
  const ends = (Object.keys(answers) as (keyof typeof answers)[]).map(
    (name): Step => ['answer', answers[name]],
  );
  const all: Step[] = [...start, ...family, ...flags, ...ends];
  const answersAt = all.length - ends.length;
  const place: Record<Exclude<Target, 'next'>, number> = {
    ...{ family: start.length, flags: start.length + family.length },
    ...{ allow: answersAt, refuse: answersAt + 1, forbid: answersAt + 2 },
  };
  const bytes = Buffer.alloc(all.length * stepBytes);
  for (const [index, [code, operand, holds = 'next', fails = 'next']] of all.entries()) {
    const skip = (target: Target): number => (target === 'next' ? 0 : place[target] - index - 1);
    const start = index * stepBytes;
    bytes.writeUInt16LE(codes[code], start);
    bytes.writeUInt8(skip(holds), start + 2);
    bytes.writeUInt8(skip(fails), start + 3);
    bytes.writeUInt32LE(operand, start + 4);
  }
  return bytes;
}
