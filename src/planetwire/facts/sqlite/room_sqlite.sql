-- name: free_bytes
select free.freelist_count * page.page_size from pragma_freelist_count free, pragma_page_size page;
