// A daemon that lies: what it says and what it then uses are two things that a test sets apart. What it uses stands in
// a file, which a probe can ask. Owns no socket; the stand-ins of the drivers ask it what to say.
import { readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';

export type Honesty =
  | 'honest'
  /** Says yes and goes on as before. */
  | 'changes nothing'
  /** Says yes and is gone. */
  | 'dies'
  /** Says yes, and has loaded what was there before. */
  | 'old generation';

export interface LyingDaemon {
  honesty: Honesty;
  /** It was told: it does what it does. @returns the generation that it claims to use */
  notified(): string;
  /** Directory of the generation that it uses; undefined when it is gone. */
  uses(): string | undefined;
}

/** @param inUse file that holds what it uses; @param current the link that it would follow */
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
