export { default } from 'picomatch';
