import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type SystemCallFilters,
  systemCallFilters,
} from '../../../../src/platform/process/system-call-filter.js';

const enosys = 0x00050026;
const eperm = 0x00050001;
const newUser = 0x10000000;
const allow = 0x7fff0000;
const x86 = 0xc000003e;
const i386 = 0x40000003;
const aarch64 = 0xc00000b7;
const arm = 0x40000028;

interface Call {
  readonly arch: number;
  readonly nr: number;
  /** The first argument: a family or flags. */
  readonly family?: number;
  /** The upper half of the first argument, which socket(2) ignores. */
  readonly high?: number;
}

/** A classic BPF machine, as far as the filter needs one. */
function run(
  machine: string,
  { arch, nr, family = 0, high = 0 }: Call,
  kind: keyof SystemCallFilters = 'confined',
): number {
  const program = Buffer.from(systemCallFilters(machine)?.[kind] ?? assert.fail());
  const data = Buffer.alloc(64);
  for (const [value, place] of [
    [nr, 0] as const,
    [arch, 4] as const,
    [family, 16] as const,
    [high, 20] as const,
  ])
    data.writeUInt32LE(value >>> 0, place);
  let accumulator = 0;
  for (let step = 0; step * 8 < program.length; step++) {
    const [code, holds, fails] = [
      program.readUInt16LE(step * 8),
      program[step * 8 + 2],
      program[step * 8 + 3],
    ];
    const operand = program.readUInt32LE(step * 8 + 4);
    if (code === 0x06) return operand;
    if (code === 0x20) accumulator = data.readUInt32LE(operand);
    else if (code === 0x15) step += (accumulator === operand ? holds : fails) ?? assert.fail();
    else if (code === 0x35) step += (accumulator >= operand ? holds : fails) ?? assert.fail();
    else if (code === 0x45) step += ((accumulator & operand) !== 0 ? holds : fails) ?? assert.fail();
    else assert.fail(`code ${code}`);
  }
  return assert.fail('the program has no end');
}

describe('the filter of system calls', () => {
  const line = (...numbers: string[]): string => numbers.join('').replaceAll(' ', '');

  it('is this program on x86-64, byte for byte', () => {
    assert.equal(
      Buffer.from(systemCallFilters('x64')?.confined ?? []).toString('hex'),
      line(
        '2000 00 00 04000000', // load the architecture
        '1500 00 13 3e0000c0', // not x86-64: ENOSYS
        '2000 00 00 00000000', // load the number
        '3500 11 00 00000040', // x32: ENOSYS
        '1500 10 00 a9010000', // io_uring_setup
        '1500 0f 00 aa010000', // io_uring_enter
        '1500 0e 00 ab010000', // io_uring_register
        '1500 0d 00 f8000000', // add_key
        '1500 0c 00 f9000000', // request_key
        '1500 0b 00 fa000000', // keyctl
        '1500 0a 00 43010000', // userfaultfd
        '1500 09 00 b3010000', // clone3
        '1500 09 00 34010000', // setns: EPERM
        '1500 04 00 38000000', // clone: look at its flags
        '1500 03 00 10010000', // unshare: look at its flags
        '1500 00 04 29000000', // not socket: allow
        '2000 00 00 10000000', // load its family
        '1500 03 02 28000000', // AF_VSOCK: ENOSYS
        '2000 00 00 10000000', // load the flags
        '4500 02 00 00000010', // CLONE_NEWUSER: EPERM
        '0600 00 00 0000ff7f', // allow
        '0600 00 00 26000500', // ENOSYS
        '0600 00 00 01000500', // EPERM
      ),
    );
  });

  it('is this program on aarch64, byte for byte', () => {
    assert.equal(
      Buffer.from(systemCallFilters('arm64')?.confined ?? []).toString('hex'),
      line(
        '2000 00 00 04000000',
        '1500 00 12 b70000c0', // not aarch64: ENOSYS
        '2000 00 00 00000000',
        '1500 10 00 a9010000',
        '1500 0f 00 aa010000',
        '1500 0e 00 ab010000',
        '1500 0d 00 d9000000', // add_key is 217 here
        '1500 0c 00 da000000',
        '1500 0b 00 db000000',
        '1500 0a 00 1a010000', // userfaultfd is 282 here
        '1500 09 00 b3010000',
        '1500 09 00 0c010000', // setns is 268 here
        '1500 04 00 dc000000', // clone is 220 here
        '1500 03 00 61000000', // unshare is 97 here
        '1500 00 04 c6000000', // socket is 198 here
        '2000 00 00 10000000',
        '1500 03 02 28000000',
        '2000 00 00 10000000',
        '4500 02 00 00000010',
        '0600 00 00 0000ff7f',
        '0600 00 00 26000500',
        '0600 00 00 01000500',
      ),
    );
  });

  const cases: readonly (readonly [string, string, Call, number])[] = [
    ['a vsock', 'x64', { arch: x86, nr: 41, family: 40 }, enosys],
    ['a vsock', 'arm64', { arch: aarch64, nr: 198, family: 40 }, enosys],
    ['a vsock whose family has junk above an int', 'x64', { arch: x86, nr: 41, family: 40, high: 1 }, enosys],
    ['a unix socket', 'x64', { arch: x86, nr: 41, family: 1 }, allow],
    ['an internet socket', 'arm64', { arch: aarch64, nr: 198, family: 2 }, allow],
    ['another call whose first argument is 40', 'x64', { arch: x86, nr: 3, family: 40 }, allow],
    ['socketcall of i386', 'x64', { arch: i386, nr: 102 }, enosys],
    ['any other call of i386', 'x64', { arch: i386, nr: 20 }, enosys],
    ['a call of arm', 'arm64', { arch: arm, nr: 20 }, enosys],
    ['a call of x86-64 on aarch64', 'arm64', { arch: x86, nr: 0 }, enosys],
    ['the lowest call of x32', 'x64', { arch: x86, nr: 0x40000000 }, enosys],
    ['socket of x32', 'x64', { arch: x86, nr: 0x40000029, family: 1 }, enosys],
    ['the last number below x32', 'x64', { arch: x86, nr: 0x3fffffff }, allow],
    ['pidfd_send_signal, before io_uring', 'x64', { arch: x86, nr: 424 }, allow],
    ['io_uring_setup', 'x64', { arch: x86, nr: 425 }, enosys],
    ['io_uring_enter', 'arm64', { arch: aarch64, nr: 426 }, enosys],
    ['io_uring_register', 'x64', { arch: x86, nr: 427 }, enosys],
    ['open_tree, behind io_uring', 'arm64', { arch: aarch64, nr: 428 }, allow],
    ['add_key', 'x64', { arch: x86, nr: 248 }, enosys],
    ['request_key', 'arm64', { arch: aarch64, nr: 218 }, enosys],
    ['keyctl', 'x64', { arch: x86, nr: 250 }, enosys],
    ['userfaultfd', 'x64', { arch: x86, nr: 323 }, enosys],
    ['a thread', 'x64', { arch: x86, nr: 56, family: 0x3d0f00 }, allow],
    ['a child', 'arm64', { arch: aarch64, nr: 220, family: 17 }, allow],
    ['vfork', 'x64', { arch: x86, nr: 58, family: newUser }, allow],
    ['unshare of the table of descriptors', 'x64', { arch: x86, nr: 272, family: 0x400 }, allow],
    [
      'a socket whose family has the bit of CLONE_NEWUSER',
      'x64',
      { arch: x86, nr: 41, family: newUser },
      allow,
    ],
  ];
  for (const [what, machine, call, expected] of cases) {
    it(`${expected === allow ? 'lets' : 'refuses'} ${what} on ${machine}`, () => {
      assert.equal(run(machine, call), expected);
      assert.equal(run(machine, call, 'nested'), expected, 'also where user namespaces are permitted');
    });
  }

  const namespaces: readonly (readonly [string, string, Call, number])[] = [
    ['clone3', 'x64', { arch: x86, nr: 435 }, enosys],
    ['clone3', 'arm64', { arch: aarch64, nr: 435 }, enosys],
    ['setns', 'x64', { arch: x86, nr: 308 }, eperm],
    ['setns', 'arm64', { arch: aarch64, nr: 268 }, eperm],
    ['clone with CLONE_NEWUSER', 'x64', { arch: x86, nr: 56, family: newUser | 17 }, eperm],
    ['clone with CLONE_NEWUSER', 'arm64', { arch: aarch64, nr: 220, family: newUser | 17 }, eperm],
    [
      'clone with CLONE_NEWUSER and junk above',
      'x64',
      { arch: x86, nr: 56, family: newUser, high: 7 },
      eperm,
    ],
    ['unshare with CLONE_NEWUSER', 'x64', { arch: x86, nr: 272, family: newUser }, eperm],
    ['unshare with all namespaces', 'arm64', { arch: aarch64, nr: 97, family: 0x7e020000 }, eperm],
  ];
  for (const [what, machine, call, expected] of namespaces) {
    it(`refuses ${what} on ${machine}, unless user namespaces are permitted`, () => {
      assert.equal(run(machine, call), expected);
      assert.equal(run(machine, call, 'nested'), allow);
    });
  }

  it('is not created for an unknown architecture', () => {
    for (const machine of ['riscv64', 'ia32', 'constructor'])
      assert.equal(systemCallFilters(machine), undefined);
  });
});
