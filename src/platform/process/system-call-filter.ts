// The seccomp program of a command in the sandbox, as the bytes of classic BPF that bubblewrap loads: the few ways out that no
// namespace closes. Pure: it makes bytes. Not an allow list, for checkers of others need who knows what; what is refused ends
// with ENOSYS, as on a kernel without it, so that a program takes its other way.
import { constants } from 'node:os';

interface Machine {
  /** AUDIT_ARCH_*: what the kernel says of who called, whatever the processor could run. */
  readonly audit: number;
  /** The number of socket(2). */
  readonly socket: number;
  /** System calls from here on are of another ABI in the same architecture; left out where there is none. */
  readonly foreignFrom?: number;
}

const machines: ReadonlyMap<string, Machine> = new Map([
  // x32 says the same AUDIT_ARCH, and sets a bit of the number.
  ['x64', { audit: 0xc000003e, socket: 41, foreignFrom: 0x40000000 }],
  ['arm64', { audit: 0xc00000b7, socket: 198 }],
]);

/** io_uring_setup, io_uring_enter, io_uring_register: the same numbers on every machine. */
const uring = [425, 426, 427] as const;
/** Belongs to no network namespace: a command in a virtual machine reaches services of the machine below it. */
const afVsock = 40;

/** Places in struct seccomp_data; of an argument its low half, little-endian, for a family is an int. */
const at = { number: 0, architecture: 4, firstArgument: 16 } as const;
const codes = { load: 0x20, jumpIfEqual: 0x15, jumpIfAtLeast: 0x35, answer: 0x06 } as const;
const answers = { allow: 0x7fff0000, refuse: 0x00050000 | constants.errno.ENOSYS } as const;

type Target = 'next' | keyof typeof answers;
/** What is done, with which number, and where it goes on when that holds, and when not. */
type Step = readonly [code: keyof typeof codes, operand: number, holds?: Target, fails?: Target];

/**
 * @param machine as `process.arch`
 * @returns an array of struct sock_filter; undefined for a machine whose numbers are not known here
 */
export function systemCallFilter(machine: string): Uint8Array | undefined {
  const known = machines.get(machine);
  if (known === undefined) return undefined;
  const { audit, socket, foreignFrom } = known;
  const foreign: Step[] = foreignFrom === undefined ? [] : [['jumpIfAtLeast', foreignFrom, 'refuse', 'next']];
  return assemble([
    // First: in another architecture the same number is another call.
    ['load', at.architecture],
    ['jumpIfEqual', audit, 'next', 'refuse'],
    ['load', at.number],
    ...foreign,
    ...uring.map((number): Step => ['jumpIfEqual', number, 'refuse', 'next']),
    ['jumpIfEqual', socket, 'next', 'allow'],
    ['load', at.firstArgument],
    ['jumpIfEqual', afVsock, 'refuse', 'allow'],
  ]);
}

const stepBytes = 8;

/** The two answers come last; a jump counts the steps that it leaves out. */
function assemble(steps: readonly Step[]): Uint8Array {
  const place: Record<Exclude<Target, 'next'>, number> = { allow: steps.length, refuse: steps.length + 1 };
  const all: Step[] = [...steps, ['answer', answers.allow], ['answer', answers.refuse]];
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
