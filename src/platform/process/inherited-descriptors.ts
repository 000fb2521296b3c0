// Descriptors that whoever started us has left open: a lock of a script, a socket of a service manager. Node closes
// the lowest ones at its start and hands on the others to every program. Finds them; whoever spawns covers them.
import * as fs from 'node:fs';
import { unlessRefused } from '../../core/errors.js';

const O_CLOEXEC = 0o2000000;
/** Above it nobody opens one by a number of his own. */
const maxDescriptor = 1023;

/** @returns numbers above 2, which an exec would hand on */
export function inheritedDescriptors(): number[] {
  return fs
    .readdirSync('/proc/self/fdinfo')
    .map(Number)
    .filter((descriptor) => descriptor > 2 && descriptor <= maxDescriptor && isHandedOn(descriptor));
}

function isHandedOn(descriptor: number): boolean {
  // The one that read the directory is gone.
  const text = unlessRefused(() => fs.readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')) ?? '';
  const flags = /^flags:\t([0-7]+)$/m.exec(text)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
}
