export { createTask, validateDetailed } from 'node-cron';
