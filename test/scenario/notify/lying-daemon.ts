// A daemon for which a test sets the answer and the used generation independently. A file has the used generation, so that a probe can read
// it. Opens no socket: the fakes of the drivers call it for the answer.
import { readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';

export type Honesty =
  | 'honest'
  /** Accepts, and changes nothing. */
  | 'changes nothing'
  /** Accepts, and ends. */
  | 'dies'
  /** Accepts, and has loaded the generation before. */
  | 'old generation';

export interface LyingDaemon {
  honesty: Honesty;
  /** Called for each notification. @returns the generation that the daemon claims to use */
  notified(): string;
  /** @returns the directory of the generation that the daemon uses; undefined after its end */
  uses(): string | undefined;
}

/**
 * @param inUse file with the directory that the daemon uses
 * @param current the link that an honest daemon follows
 */
export function lyingDaemon(inUse: string, current: string): LyingDaemon {
  let before = '';
  return {
    honesty: 'honest',
    notified() {
      const wanted = realpathSync(current);
      if (this.honesty === 'honest') writeFileSync(inUse, wanted);
      if (this.honesty === 'dies') rmSync(inUse, { force: true });
      if (this.honesty === 'old generation') writeFileSync(inUse, before);
      if (this.honesty === 'honest') before = wanted;
      return wanted.split('/').at(-1) ?? '';
    },
    uses: () => {
      try {
        return readFileSync(inUse, 'utf8');
      } catch {
        return undefined;
      }
    },
  };
}
