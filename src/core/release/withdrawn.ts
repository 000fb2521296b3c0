// Whether an offer takes back what is active. Pure.
import type { ReleaseInfo } from './release.js';

/**
 * @param offered what the channel points at; the serials that it withdraws are of its channel alone
 * @returns true for a host that has to leave what it uses
 */
export function withdraws(
  offered: Pick<ReleaseInfo, 'channel' | 'withdrawn'>,
  active: Pick<ReleaseInfo, 'channel' | 'serial'> | undefined,
): boolean {
  return active?.channel === offered.channel && offered.withdrawn.includes(active.serial);
}
