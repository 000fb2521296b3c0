import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { findUnit } from '../../../../src/platform/process/find-unit.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('a unit', () => {
  it('is installed where any of the folders has its file, and not by the directory of its drop-ins', () => {
    using dir = tempDir();
    const folders = [dir.join('absent'), dir.join('etc'), dir.join('lib')];
    mkdirSync(dir.join('etc', 'writ-agent.service.d'), { recursive: true });
    mkdirSync(dir.join('lib'));
    const found = () => findUnit('writ-agent.service', folders);
    assert.equal(found(), 'absent');
    symlinkSync(dir.join('nowhere'), dir.join('etc', 'writ-agent.service'));
    assert.equal(found(), 'absent');
    writeFileSync(dir.join('lib', 'writ-agent.service'), '');
    assert.equal(found(), 'installed');
  });
});
