// Finds descriptors that the parent process left open, such as the lock of a script or a socket of a service manager. Node
// closes the lowest ones at its start and passes the others to every program. run-command.ts hides them from programs.
import * as fs from 'node:fs';
import { unlessRefused } from '../../core/errors.js';

const O_CLOEXEC = 0o2000000;
/** Upper limit: a script chooses no higher descriptor number. */
const maxDescriptor = 1023;

/** @returns descriptors above 2 that an exec would pass on */
export function inheritedDescriptors(): number[] {
  return fs
    .readdirSync('/proc/self/fdinfo')
    .map(Number)
    .filter((descriptor) => descriptor > 2 && descriptor <= maxDescriptor && isHandedOn(descriptor));
}

function isHandedOn(descriptor: number): boolean {
  // The descriptor that read the directory is closed already.
  const text = unlessRefused(() => fs.readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')) ?? '';
  const flags = /^flags:\t([0-7]+)$/m.exec(text)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
}
