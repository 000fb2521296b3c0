// A missing library in ld.so.preload, which makes each program of the host write a warning first.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { preloadChecks } from '../../../../src/agent/doctor/check-preload.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

/** The findings for this content; THERE in it is replaced by the path of an existing file. */
async function findings(text?: string): Promise<readonly string[]> {
  using etc = tempDir();
  writeFileSync(etc.join('libx.so'), '');
  if (text !== undefined)
    writeFileSync(etc.join('ld.so.preload'), text.replaceAll('THERE', etc.join('libx.so')));
  const found = await Promise.all(preloadChecks({ etc: etc.path }).map(([, examine]) => examine()));
  return found.flat().map((one) => `${one.state} ${one.text.replace(etc.path, '/etc')}`);
}

describe('doctor on the dynamic loader', () => {
  it('warns of a missing library in ld.so.preload', async () => {
    assert.deepEqual(await findings('/nope/libx.so\n'), [
      'warn /etc/ld.so.preload names /nope/libx.so, which cannot be opened: the dynamic loader warns of it in each program',
    ]);
  });

  it('names three of many, with white space or colons between them', async () => {
    const [line = ''] = await findings('/n/a.so:/n/b.so /n/c.so\t/n/d.so\n/n/e.so THERE');
    assert.match(line, /names \/n\/a\.so, \/n\/b\.so, \/n\/c\.so and 2 more,/);
  });

  it('returns no finding for an existing library, a name that the loader resolves, a comment, or a missing file', async () => {
    assert.deepEqual(await findings('THERE libsnoopy.so # /nope/libx.so\n/usr/$LIB/x.so\n'), []);
    assert.deepEqual(await findings(), []);
  });
});
