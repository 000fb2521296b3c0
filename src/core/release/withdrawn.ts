// Whether an offered release withdraws the active one. Pure.
import type { ReleaseInfo } from './release.js';

/**
 * @param offered head of the channel; the serials that it withdraws are of its channel only
 * @returns true if the host must leave the active release
 */
export function withdraws(
  offered: Pick<ReleaseInfo, 'channel' | 'withdrawn'>,
  active: Pick<ReleaseInfo, 'channel' | 'serial'> | undefined,
): boolean {
  return active?.channel === offered.channel && offered.withdrawn.includes(active.serial);
}
