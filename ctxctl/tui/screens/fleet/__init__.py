"""What a dataset of many captures holds, by project, client and week."""
